import { type AcceleratorName, accelerators } from '../../catalog/instances/accelerated-instances';
import { activeParameterCount } from '../../catalog/model/parameters';
import { type LayoutInput, worldSizeOf } from '../layout';

const TORCHTITAN_ON_SAGEMAKER =
  'https://aws.amazon.com/blogs/machine-learning/efficient-pre-training-of-llama-3-like-model-architectures-using-torchtitan-on-amazon-sagemaker/';
const LLM_FOUNDRY = 'https://github.com/mosaicml/llm-foundry/blob/8c8dd48f7216/scripts/train/benchmarking/README.md';
const NANOTRON = 'https://github.com/huggingface/nanotron/tree/2411b022a75f';
const MEGATRON_BRIDGE =
  'https://github.com/NVIDIA-NeMo/Megatron-Bridge/blob/067f987df03b/docs/performance-summary-archive.md';
const AUTOMODEL = 'https://github.com/NVIDIA-NeMo/Automodel/blob/36044ad3/docs/performance-summary.mdx';
const NEMO = 'https://github.com/NVIDIA/NeMo/blob/3a8081fef6/docs/source/performance/performance_summary.md';
const FMS_FSDP = 'https://github.com/foundation-model-stack/fms-fsdp/blob/ed74fd5/README.md';
const FMS_FSDP_CF6E42C = 'https://github.com/foundation-model-stack/fms-fsdp/blob/cf6e42c/README.md';
const TORCHTITAN = 'https://github.com/pytorch/torchtitan/blob/1d5815c4b/docs/performance.md';
const DGXC = 'https://github.com/NVIDIA/dgxc-benchmarking/blob/v25.04/llama3.1/README.md';
const TORCHTITAN_BENCHMARKS =
  'https://github.com/pytorch/torchtitan/blob/b5bcd76c66d0/benchmarks/llama3-8b_h200_202506_trainy-whitefiber.md';
const DGXC_NEMOTRON = 'https://github.com/NVIDIA/dgxc-benchmarking/blob/v25.04/nemotron/README.md';
const NEMO_8E3D65DC = 'https://github.com/NVIDIA/NeMo/blob/8e3d65dcfe/docs/source/performance/performance_summary.md';
const DGXC_MAXTEXT = 'https://github.com/NVIDIA/dgxc-benchmarking/blob/v24.11.1/maxtext/README_70b.md';
const NEMO_4C73F77670 = 'https://github.com/NVIDIA/NeMo/blob/4c73f77670/docs/source/performance/performance_summary.md';
const GPU_RECIPES =
  'https://github.com/AI-Hypercomputer/gpu-recipes/blob/2e1fd5e/training/a4/llama3-1-70b/maxtext-pretraining-gke/README.md';
const DGXC_V25_02 = 'https://github.com/NVIDIA/dgxc-benchmarking/blob/v25.02/maxtext/README_70b.md';
const DGXC_LLAMA3 = 'https://github.com/NVIDIA/dgxc-benchmarking/blob/v25.02/llama3/finetuning/README_70b.md';
const GPU_RECIPES_TRAINING =
  'https://github.com/AI-Hypercomputer/gpu-recipes/blob/2e1fd5e/training/a3ultra/llama3_70b/nemo-gke/nemo2407/recipe/README.md';
const DGXC_NEMO_MEGATRON = 'https://github.com/NVIDIA/dgxc-benchmarking/blob/v25.02/nemo_megatron/README_175b.md';
const BIGSCIENCE =
  'https://github.com/bigscience-workshop/bigscience/blob/9e64edec2ad1/train/tr11-176B-ml/chronicles-prequel.md';
const DGXC_LLAMA3_1 = 'https://github.com/NVIDIA/dgxc-benchmarking/blob/v24.11.1/llama3.1/README_405b.md';

/** How a published run is divided. */
type PublishedMethod = 'FSDP' | 'tensor or pipeline parallel' | 'experts';

/** A published speed: name, billions of parameters that a token meets, GPU and number of GPUs, tokens of a sequence, tokens/s per GPU. */
type Row = readonly [
  name: string,
  activeB: number,
  gpu: AcceleratorName,
  gpus: number,
  sequenceLength: number,
  precision: 'bf16' | 'fp8',
  method: PublishedMethod,
  tokensPerSecondPerGpu: number,
  source: string,
];

/**
 * The fastest published run of each model, GPU, precision and method, with exact figures in a source whose licence is Apache 2.0, MIT or
 * BSD. Shown beside plans, and not an input of theirs. Retrieved 2026-11-20, those of NeMo AutoModel and on GB200 2026-11-29.
 */
const PUBLISHED_SPEEDS: readonly Row[] = [
  ['Llama 3 8B (torchtitan)', 8.03, 'H100-80GB', 32, 8192, 'bf16', 'FSDP', 6475, TORCHTITAN_ON_SAGEMAKER],
  ['Llama 3 8B (torchtitan, compiled)', 8.03, 'H100-80GB', 32, 8192, 'bf16', 'FSDP', 7166, TORCHTITAN_ON_SAGEMAKER],
  ['MPT 1B', 1.31, 'A100-40GB', 8, 512, 'bf16', 'FSDP', 21782, LLM_FOUNDRY],
  ['MPT 1B', 1.31, 'A100-80GB', 8, 512, 'bf16', 'FSDP', 23148, LLM_FOUNDRY],
  ['MPT 1B', 1.31, 'H100-80GB', 8, 512, 'bf16', 'FSDP', 52275, LLM_FOUNDRY],
  ['MPT 1B', 1.31, 'H100-80GB', 8, 512, 'fp8', 'FSDP', 70315, LLM_FOUNDRY],
  ['Llama 1.3B', 1.34, 'H100-80GB', 8, 4096, 'bf16', 'tensor or pipeline parallel', 45381, NANOTRON],
  ['MPT 3B', 2.65, 'A100-40GB', 8, 512, 'bf16', 'FSDP', 11324, LLM_FOUNDRY],
  ['MPT 3B', 2.65, 'A100-80GB', 8, 512, 'bf16', 'FSDP', 12127, LLM_FOUNDRY],
  ['Qwen3 30B A3B', 3.35, 'B200-180GB', 8, 4096, 'fp8', 'experts', 27136, MEGATRON_BRIDGE],
  ['Qwen3 30B A3B', 3.35, 'B300-288GB', 8, 4096, 'fp8', 'experts', 40769, MEGATRON_BRIDGE],
  ['Qwen3 30B A3B', 3.35, 'H100-80GB', 16, 4096, 'fp8', 'experts', 9058, MEGATRON_BRIDGE],
  ['Llama 3.6B', 3.57, 'H100-80GB', 8, 4096, 'bf16', 'tensor or pipeline parallel', 17994, NANOTRON],
  ['Nemotron 3 Nano 30B A3B', 3.6, 'B200-180GB', 8, 8192, 'fp8', 'experts', 32768, MEGATRON_BRIDGE],
  ['Nemotron 3 Nano 30B A3B', 3.6, 'B300-288GB', 8, 8192, 'fp8', 'experts', 37316, MEGATRON_BRIDGE],
  ['Nemotron 3 Nano 30B A3B', 3.6, 'H100-80GB', 16, 8192, 'fp8', 'experts', 14890, MEGATRON_BRIDGE],
  ['GPT-3 5B', 5.04, 'H100-80GB', 64, 2048, 'fp8', 'FSDP', 23574, NEMO],
  ['gpt-oss 120B', 5.7, 'B200-180GB', 64, 4096, 'bf16', 'experts', 13722, MEGATRON_BRIDGE],
  ['gpt-oss 120B', 5.7, 'B300-288GB', 64, 4096, 'bf16', 'experts', 15232, MEGATRON_BRIDGE],
  ['gpt-oss 120B', 5.7, 'B300-288GB', 64, 4096, 'fp8', 'experts', 18534, MEGATRON_BRIDGE],
  ['MPT 7B', 6.65, 'A100-40GB', 8, 512, 'bf16', 'FSDP', 3895.9, LLM_FOUNDRY],
  ['MPT 7B', 6.66, 'A100-80GB', 8, 2048, 'bf16', 'FSDP', 4641.2, LLM_FOUNDRY],
  ['MPT 7B', 6.66, 'H100-80GB', 8, 2048, 'bf16', 'FSDP', 10643, LLM_FOUNDRY],
  ['Llama 2 7B', 6.74, 'A100-80GB', 128, 4096, 'bf16', 'FSDP', 4550, FMS_FSDP],
  ['Llama 2 7B', 6.74, 'H100-80GB', 96, 4096, 'bf16', 'FSDP', 7500, FMS_FSDP_CF6E42C],
  ['Llama 2 7B', 6.74, 'H100-80GB', 8, 4096, 'fp8', 'FSDP', 17617, NEMO],
  ['Llama 3 8B', 8.03, 'A100-80GB', 64, 8192, 'bf16', 'FSDP', 2973, TORCHTITAN],
  ['Llama 3 8B', 8.03, 'B200-180GB', 8, 8192, 'fp8', 'FSDP', 30624, MEGATRON_BRIDGE],
  ['Llama 3 8B', 8.03, 'H100-80GB', 8, 8192, 'bf16', 'FSDP', 10682, DGXC],
  ['Llama 3 8B', 8.03, 'H100-80GB', 8, 8192, 'fp8', 'FSDP', 14451, MEGATRON_BRIDGE],
  ['Llama 3 8B', 8.03, 'H200-141GB', 32, 8192, 'fp8', 'FSDP', 10938, TORCHTITAN_BENCHMARKS],
  ['Nemotron 3 Super 120B A12B', 12.8, 'B200-180GB', 64, 8192, 'fp8', 'experts', 6400, MEGATRON_BRIDGE],
  ['Nemotron 3 Super 120B A12B', 12.8, 'B300-288GB', 64, 8192, 'fp8', 'experts', 7867, MEGATRON_BRIDGE],
  ['MPT 13B', 12.85, 'A100-80GB', 8, 2048, 'bf16', 'FSDP', 2262.1, LLM_FOUNDRY],
  ['MPT 13B', 12.85, 'H100-80GB', 8, 1024, 'bf16', 'FSDP', 5502.4, LLM_FOUNDRY],
  ['Llama 2 13B', 13.02, 'A100-80GB', 128, 4096, 'bf16', 'FSDP', 2150, FMS_FSDP],
  ['Llama 2 13B', 13.02, 'H100-80GB', 8, 4096, 'fp8', 'tensor or pipeline parallel', 10176, NEMO],
  ['Nemotron-4 15B', 15.63, 'H100-80GB', 16, 4096, 'bf16', 'tensor or pipeline parallel', 6159.4, DGXC_NEMOTRON],
  ['Nemotron-4 15B', 15.63, 'H100-80GB', 16, 4096, 'fp8', 'tensor or pipeline parallel', 8274.7, DGXC_NEMOTRON],
  ['GPT-3 20B', 20.25, 'H100-80GB', 64, 2048, 'fp8', 'tensor or pipeline parallel', 5894, NEMO],
  ['Nemotron-3 22B', 21.27, 'H100-80GB', 64, 4096, 'fp8', 'tensor or pipeline parallel', 4312, NEMO_8E3D65DC],
  ['Qwen3 235B A22B', 22.2, 'B200-180GB', 256, 4096, 'fp8', 'experts', 3805, MEGATRON_BRIDGE],
  ['Qwen3 235B A22B', 22.2, 'B300-288GB', 256, 4096, 'fp8', 'experts', 5936, MEGATRON_BRIDGE],
  ['Qwen3 235B A22B', 22.2, 'H100-80GB', 256, 4096, 'fp8', 'experts', 1712, MEGATRON_BRIDGE],
  ['MPT 30B', 29.98, 'A100-40GB', 32, 2048, 'bf16', 'FSDP', 857.22, LLM_FOUNDRY],
  ['MPT 30B', 29.98, 'H100-80GB', 32, 2048, 'bf16', 'FSDP', 2308.1, LLM_FOUNDRY],
  ['DeepSeek-V3', 37.6, 'B200-180GB', 256, 4096, 'fp8', 'experts', 3328, MEGATRON_BRIDGE],
  ['DeepSeek-V3', 37.6, 'B300-288GB', 256, 4096, 'fp8', 'experts', 3541, MEGATRON_BRIDGE],
  ['MPT 70B', 64.86, 'A100-40GB', 128, 2048, 'bf16', 'FSDP', 376.52, LLM_FOUNDRY],
  ['MPT 70B', 64.86, 'A100-80GB', 64, 2048, 'bf16', 'FSDP', 410.53, LLM_FOUNDRY],
  ['Llama 2 70B', 68.98, 'A100-80GB', 128, 4096, 'bf16', 'FSDP', 410, FMS_FSDP],
  ['Llama 2 70B', 68.98, 'H100-80GB', 2048, 4096, 'bf16', 'FSDP', 1159.4, DGXC_MAXTEXT],
  ['Llama 2 70B', 68.98, 'H100-80GB', 64, 4096, 'fp8', 'FSDP', 1894.5, DGXC_MAXTEXT],
  ['Llama 2 70B', 68.98, 'H100-80GB', 16, 4096, 'fp8', 'tensor or pipeline parallel', 1833, NEMO_4C73F77670],
  ['Llama 3 70B', 70.55, 'A100-80GB', 64, 8192, 'bf16', 'FSDP', 331, TORCHTITAN],
  ['Llama 3 70B', 70.55, 'B200-180GB', 256, 8192, 'fp8', 'FSDP', 3130.5, GPU_RECIPES],
  ['Llama 3 70B', 70.55, 'H100-80GB', 256, 8192, 'bf16', 'FSDP', 1060.9, DGXC_V25_02],
  ['Llama 3 70B', 70.55, 'H100-80GB', 32, 4096, 'bf16', 'tensor or pipeline parallel', 1219, DGXC_LLAMA3],
  ['Llama 3 70B', 70.55, 'H200-141GB', 256, 8192, 'fp8', 'tensor or pipeline parallel', 1636.7, GPU_RECIPES_TRAINING],
  ['Llama 80B', 79.99, 'H100-80GB', 64, 4096, 'bf16', 'tensor or pipeline parallel', 599.69, NANOTRON],
  ['GPT-3 175B', 174.58, 'H100-80GB', 256, 2048, 'bf16', 'tensor or pipeline parallel', 487.16, DGXC_NEMO_MEGATRON],
  ['GPT-3 175B', 174.58, 'H100-80GB', 512, 2048, 'fp8', 'tensor or pipeline parallel', 832, NEMO],
  ['BLOOM 176B', 176, 'A100-80GB', 384, 2048, 'bf16', 'tensor or pipeline parallel', 107.05, BIGSCIENCE],
  ['Llama 3.1 405B', 405.85, 'H100-80GB', 576, 8192, 'bf16', 'tensor or pipeline parallel', 208.37, DGXC_LLAMA3_1],
  ['Llama 3.1 405B', 405.85, 'H100-80GB', 512, 8192, 'fp8', 'tensor or pipeline parallel', 331.12, DGXC],
  ['Qwen3 30B A3B (NeMo AutoModel)', 3.35, 'H100-80GB', 8, 4096, 'bf16', 'experts', 12040, AUTOMODEL],
  ['Nemotron 3 Nano 30B A3B (NeMo AutoModel)', 3.6, 'H100-80GB', 8, 4096, 'bf16', 'experts', 16789, AUTOMODEL],
  ['gpt-oss 20B (NeMo AutoModel)', 4.19, 'H100-80GB', 8, 4096, 'bf16', 'experts', 13058, AUTOMODEL],
  ['gpt-oss 120B (NeMo AutoModel)', 5.7, 'H100-80GB', 64, 4096, 'bf16', 'experts', 7626, AUTOMODEL],
  ['Nemotron 3 Super 120B A12B (NeMo AutoModel)', 12.8, 'H100-80GB', 64, 4096, 'bf16', 'experts', 4497, AUTOMODEL],
  ['Kimi K2 (NeMo AutoModel)', 32.9, 'H100-80GB', 256, 4096, 'bf16', 'experts', 924, AUTOMODEL],
  ['DeepSeek-V3 (NeMo AutoModel)', 37.6, 'H100-80GB', 256, 4096, 'bf16', 'experts', 1002, AUTOMODEL],
  ['Qwen3 30B A3B', 3.35, 'GB200-186GB', 8, 4096, 'fp8', 'experts', 40960, MEGATRON_BRIDGE],
  ['Nemotron 3 Nano 30B A3B', 3.6, 'GB200-186GB', 8, 8192, 'fp8', 'experts', 34816, MEGATRON_BRIDGE],
  ['gpt-oss 120B', 5.7, 'GB200-186GB', 64, 4096, 'fp8', 'experts', 28947, MEGATRON_BRIDGE],
  ['Nemotron 3 Super 120B A12B', 12.8, 'GB200-186GB', 64, 8192, 'fp8', 'experts', 7040, MEGATRON_BRIDGE],
  ['Qwen3 235B A22B', 22.2, 'GB200-186GB', 256, 4096, 'fp8', 'experts', 7376, MEGATRON_BRIDGE],
  ['DeepSeek-V3', 37.6, 'GB200-186GB', 256, 4096, 'fp8', 'experts', 4969, MEGATRON_BRIDGE],
  ['Llama 3.1 405B', 405.85, 'GB200-186GB', 256, 8192, 'fp8', 'tensor or pipeline parallel', 864, MEGATRON_BRIDGE],
];

/** Distance above which a published run says nothing about a plan: models of five times the size, for example. */
const FARTHEST = 1.6;
const OTHER_GPU = 1;
/** Tensor parallelism costs more than a few nodes do. */
const OTHER_METHOD = 0.8;

function methodOf(l: LayoutInput): PublishedMethod {
  if (l.model.experts > 1) return 'experts';
  return l.tensor * l.pipeline > 1 ? 'tensor or pipeline parallel' : 'FSDP';
}

const ratio = (a: number, b: number) => Math.abs(Math.log(a / b));

/** The published run that is nearest to a layout in model size, GPU, number of GPUs, sequence length and method; undefined if none is near. */
export function nearestPublished(l: LayoutInput) {
  if (l.adapters !== undefined || l.preferences) return undefined;
  const activeB = activeParameterCount(l.model) / 1e9;
  const precision = l.precision.startsWith('bf16') ? 'bf16' : l.precision === 'fp32' ? undefined : 'fp8';
  const method = methodOf(l);
  const near = PUBLISHED_SPEEDS.flatMap((row) => {
    const [name, theirB, gpu, gpus, sequenceLength, theirPrecision, theirMethod, tokensPerSecondPerGpu, source] = row;
    const chip = accelerators(1, gpu);
    const isSameKind = (theirMethod === 'experts') === (method === 'experts') && theirPrecision === precision;
    if (!isSameKind || chip.architecture !== l.accelerator.architecture) return [];
    const distance =
      ratio(theirB, activeB) +
      0.5 * ratio(sequenceLength, l.sequence) +
      0.1 * ratio(gpus, worldSizeOf(l)) +
      (chip.model === l.accelerator.model ? 0 : OTHER_GPU) +
      (theirMethod === method ? 0 : OTHER_METHOD);
    // The speed at the planned model's number of active parameters.
    const forThisModel = tokensPerSecondPerGpu * (theirB / activeB);
    const run = { name, gpu, gpus, sequenceLength, precision: theirPrecision, method: theirMethod, source };
    return [{ distance, run: { ...run, tokensPerSecondPerGpu, forThisModel } }];
  }).sort((a, b) => a.distance - b.distance || b.run.tokensPerSecondPerGpu - a.run.tokensPerSecondPerGpu);
  return near[0] && near[0].distance <= FARTHEST ? near[0].run : undefined;
}

export type NearestPublished = NonNullable<ReturnType<typeof nearestPublished>>;
