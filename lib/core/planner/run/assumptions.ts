import { adapterParameters, layersOfBlocks } from '../../catalog/model/linear-layers';
import {
  type BlockShape,
  hasAttention,
  kindsOfBlocks,
  type ParameterShape,
  parameterCount,
  sumOverBlocks,
} from '../../catalog/model/parameters';
import type { ModelShape } from '../../catalog/model/shape';
import { type Issue, issue } from '../../config/issue';
import type { RunSpec } from '../../config/run-spec';
import { compareVersions, pytorchOfImage } from '../../distribution/image-version';
import type { LayoutInput, Stack } from '../layout';
import { meanHeadSize } from '../model-size';
import { hasTensorOverNodes, hasUnknownExperts, isOwnOverNodes } from '../plan';
import { lowPrecisionOf } from '../time/compute';

/**
 * Properties of a software stack that do not depend on the layout; used by the planner for run files and by the scoring of published rows.
 */
export type StackTraits = Pick<
  LayoutInput,
  'kernels' | 'attention' | 'overlapsTensor' | 'gathersInputsAgain' | 'gradientBytes' | 'optimizerBytes'
>;

const PLAIN: StackTraits = {
  kernels: 'eager',
  attention: 'flash',
  overlapsTensor: false,
  gathersInputsAgain: true,
  gradientBytes: 2,
  optimizerBytes: 8,
};

/** Defaults of each stack; options of a run or of a published row take precedence. */
export const STACKS: Readonly<Record<Stack, StackTraits>> = {
  // PyTorch's sequence parallelism keeps the gathered inputs of its products.
  fsdp: { ...PLAIN, gathersInputsAgain: false },
  deepspeed: PLAIN,
  // Transformer Engine's layers, with tensor-parallel communication hidden behind the products.
  megatron: { ...PLAIN, kernels: 'fused', overlapsTensor: true },
  // Megatron-DeepSpeed and in-house code of its generation: fused softmax over the score matrix.
  'megatron-legacy': { ...PLAIN, attention: 'fused' },
  nanotron: PLAIN,
  jax: { ...PLAIN, kernels: 'fused' },
  // No published row of SMP v1 names its attention kernel; since 1.13 it has FlashAttention.
  'smp-v1': PLAIN,
};

/** SMP v2 is FSDP with Transformer Engine's layers, which gather the inputs of their products again. */
export const SMP_V2: StackTraits = { ...STACKS.fsdp, kernels: 'fused', gathersInputsAgain: true };

/** Attention stays within the documents of a row. */
export const masksDocuments = ({ training }: RunSpec): boolean =>
  training.objective === 'sft' || training.documentMask === true;

/** Capped scores and sinks, which FlexAttention of PyTorch 2.11 and later computes in one kernel. */
export const changesScores = ({ model }: RunSpec): boolean =>
  model?.architecture.logitSoftcap?.attention !== undefined || model?.architecture.attentionSinks === true;

/** The earliest PyTorch whose FlexAttention the built-in trainer uses (flex.py). */
export const FLEX_SINCE = '2.11';

/** The built-in trainer computes capped scores with plain operations if the image's PyTorch is known to be older. */
export function keepsScores(run: RunSpec): boolean {
  const version = pytorchOfImage(run);
  const isOlder = version !== undefined && compareVersions(version, FLEX_SINCE) < 0;
  return isOlder && run.code.builtin === 'builtin' && run.model?.architecture.logitSoftcap?.attention !== undefined;
}

type Lora = NonNullable<RunSpec['training']['lora']>;

/** Why adapters cannot be planned: layers that the model does not have, or a model of other layers than those of the built-in trainer. */
function unknownLayers(lora: Lora, model: ParameterShape): Issue[] {
  const names = layersOfBlocks(model, lora.targets).map(({ name }) => name);
  const isOther = kindsOfBlocks(model).some(({ block }) => block.recurrence ?? block.attention ?? block.expertHidden);
  if (!isOther && lora.targets.every((name) => name === 'head' || names.includes(name))) return [];
  return [
    issue('plan/unknown', 'error', 'training.lora.targets', {
      must: 'must be layers of a model that the built-in trainer supports for a plan',
      got: lora.targets,
      fix: 'plan without lora for an upper bound',
    }),
  ];
}

const outputsOf = (lora: Lora, model: ParameterShape): number =>
  layersOfBlocks(model, lora.targets).reduce((sum, { active, outputs, blocks }) => sum + blocks * active * outputs, 0) /
  model.layers;

type FineTuning = Pick<LayoutInput, 'adapters' | 'expertAdapters' | 'adaptedOutputs' | 'preferences' | 'quantized'>;

/** Adapters and preferences of a run, or why they cannot be planned. */
export function fineTuningOf({ training }: RunSpec, model: ParameterShape): FineTuning | Issue[] {
  const { lora, objective } = training;
  const unknown = lora ? unknownLayers(lora, model) : [];
  if (unknown.length > 0) return unknown;
  return {
    ...(lora && {
      adapters: adapterParameters(model, lora),
      expertAdapters: adapterParameters(model, lora, ({ count }) => count > 1),
      adaptedOutputs: outputsOf(lora, model),
    }),
    ...(lora?.quantization && { quantized: true }),
    ...(objective === 'dpo' && { preferences: lora ? 'adapters' : 'copy' }),
  };
}

const notesIf = (applies: boolean | undefined, ...notes: string[]): string[] => (applies ? notes : []);

function assumptionsOfFineTuning({ adapters, preferences, quantized, model }: LayoutInput): string[] {
  const reference =
    preferences === 'copy'
      ? 'a frozen copy of the model, sharded like it, which is counted under parameters'
      : 'the model without its adapters';
  return [
    ...notesIf(
      preferences !== undefined,
      `batches count pairs of two full sequences; the reference is ${reference}, and runs forward before each micro-batch`,
      'no published run measures preferences: the interval is wider, and MFU counts the trained model alone',
    ),
    ...notesIf(
      adapters !== undefined,
      `${((adapters ?? 0) / 1e6).toFixed(1)} M parameters of adapters are trained; their own products are not counted, activations are those of full training (an upper bound)`,
      'only six published runs measure adapters, all of rank 16: the interval is wider, and MFU counts the gradients of the frozen weights too, as the trainer prints it',
    ),
    ...notesIf(
      quantized,
      'the frozen matrices of blocks take 0.5625 bytes per parameter (4 bits, and a scale in fp32 per 64); embedding, head and norms keep their precision',
      'each product unpacks its matrix first, for four times as long as reading and writing it takes, as with bitsandbytes 0.41 on A100; newer kernels may take less, so the interval is wider',
    ),
    ...notesIf(
      quantized && model.experts > 1,
      'experts in 4 bits are computed one after the other: launching their kernels takes 0.15 ms each in a forward pass, which no published run measures',
    ),
  ];
}

/** The assumptions of a plan about the model, its cluster and the software that trains it. */
export function assumptionsOf(run: RunSpec, layout: LayoutInput): string[] {
  const { domainNodes, nodes, precision } = layout;
  return [
    ...(run.model ? unmeasured(run.model.architecture) : []),
    ...masked(run),
    ...notesIf(
      (lowPrecisionOf(layout)?.unsure ?? 0) > 0,
      `no scored run measures ${precision}: its products and casts are planned by their kernels, all layers alike`,
    ),
    ...assumptionsOfFineTuning(layout),
    ...notesIf(
      domainNodes !== undefined && nodes > 1,
      `NVLink joins the GPUs of ${domainNodes} instances of an UltraServer at the speed that it has within one, EFA joins the rest; no published run measures it`,
    ),
    ...assumptionsOfRay(run, layout),
    ...notesIf(
      hasUnknownExperts(layout),
      'the interval is wide because implementations of experts differ: published ones of Qwen3 30B by a factor of 3.7 on the same GPUs',
    ),
    ...notesIf(
      isOwnOverNodes(layout),
      'the interval is wider because no run of the built-in trainer on several hosts has been measured',
    ),
    ...notesIf(
      hasTensorOverNodes(layout),
      'the interval is wider because published speeds of collectives over all GPUs of several hosts differ by a factor of 2.3',
    ),
  ];
}

/** Assumed cost of a document mask, capped scores and sinks, as far as it is planned. */
function masked(run: RunSpec): string[] {
  if (keepsScores(run))
    return [
      `capped scores are planned with all of them in memory: PyTorch ${pytorchOfImage(run)} has no kernel for them, ${FLEX_SINCE} and later have`,
    ];
  const full = run.training.objective === 'sft' ? 'every row is full of documents; ' : '';
  if (masksDocuments(run))
    return [
      `${full}attention is planned as that of one document in FlexAttention (PyTorch 2.11 and later): shorter documents take less, older versions several times as long`,
    ];
  return notesIf(
    run.code.builtin === 'builtin' && changesScores(run),
    'capped scores and sinks are planned in FlexAttention (PyTorch 2.11 and later); older versions take several times as long',
  );
}

/** Parts that no published run has measured: the interval does not cover them. */
function unmeasured(a: ModelShape): string[] {
  const parts = [
    ...notesIf(a.latentAttention !== undefined, 'latent attention'),
    ...notesIf(a.slidingWindow !== undefined, 'attention windows'),
    ...notesIf(a.attentionSinks, 'attention sinks'),
    ...notesIf(a.logitSoftcap !== undefined, 'capped logits'),
    ...notesIf(Boolean(a.sharedExperts || a.denseLayers), 'shared experts and dense layers'),
    ...notesIf(
      a.family?.recurrence !== undefined,
      "linear recurrences (as kernels of mamba-ssm or fla compute them; PyTorch's own operations are slower and keep more)",
    ),
    ...notesIf(a.family?.differing !== undefined, 'layers with other attention than the rest'),
  ];
  const named = parts.join(', ');
  return notesIf(parts.length > 0, `no constant is fitted to ${named}: time and memory follow from the shape alone`);
}

const GIB = 2 ** 30;
/** Bytes per number: weights and cache of an inference engine in bf16. */
const ENGINE_BYTES = 2;

/** Numbers per token in one block's cache: keys and values, or the compressed form of latent attention. */
const cachedPerToken = (block: BlockShape): number =>
  !hasAttention(block)
    ? 0
    : block.latent
      ? block.latent.kvRank + block.latent.ropeHeadSize
      : 2 * block.kvHeads * meanHeadSize(block);

/**
 * Assumptions and omissions of a plan for custom code under Ray: where the script places its workers, and what they hold besides the
 * trained model. The figures for an inference engine follow from the model's shape (weights in bf16, and the cache of
 * https://docs.vllm.ai/en/latest/design/paged_attention.html); they are not measured.
 */
function assumptionsOfRay(run: RunSpec, { model, sequence }: Pick<LayoutInput, 'model' | 'sequence'>): string[] {
  if (run.distribution.launcher !== 'ray') return [];
  const weights = (ENGINE_BYTES * parameterCount(model)) / GIB;
  const cache = (ENGINE_BYTES * sequence * sumOverBlocks(model, cachedPerToken)) / GIB;
  const engine = `${weights.toFixed(1)} GiB for its weights, divided by its own tensor parallelism, and ${cache.toFixed(2)} GiB of cache for each sequence of ${sequence} tokens`;
  return [
    'the script places its workers itself: planned is one on each GPU, the model fully sharded over all (FSDP)',
    'time and memory are those of the training steps alone: generation, rewards, a critic and a frozen reference are not planned',
    `an inference engine on the same GPUs needs about ${engine}: an estimate, not part of the memory above`,
  ];
}
