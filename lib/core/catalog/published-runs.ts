/** A published measurement of a training run, expressed as a run file. */
export interface PublishedMeasurement {
  name: string;
  source: string;
  preset: string;
  sequenceLength: number;
  microBatchSize: number;
  activationCheckpointing: 'none' | 'selective' | 'full';
  compile: boolean;
  instanceType: string;
  instanceCount: number;
  tokensPerSecondPerGpu: number;
}

const TORCHTITAN_ON_SAGEMAKER =
  'https://aws.amazon.com/blogs/machine-learning/efficient-pre-training-of-llama-3-like-model-architectures-using-torchtitan-on-amazon-sagemaker/';

/** The layout of torchtitan's llama3_8b configuration, which the blog post uses unchanged. */
const TORCHTITAN_8B = {
  source: TORCHTITAN_ON_SAGEMAKER,
  preset: 'llama3-8b',
  sequenceLength: 8192,
  microBatchSize: 1,
  activationCheckpointing: 'selective',
  instanceType: 'ml.p5.48xlarge',
  instanceCount: 4,
} as const;

/** Shown next to plans of the same model on the same instance type; not an input of plans. Retrieved 2026-11-21. */
export const PUBLISHED_RUNS: readonly PublishedMeasurement[] = [
  { ...TORCHTITAN_8B, name: 'Llama 3 8B, FSDP2, bf16', compile: false, tokensPerSecondPerGpu: 6475 },
  { ...TORCHTITAN_8B, name: 'Llama 3 8B, FSDP2, torch.compile, bf16', compile: true, tokensPerSecondPerGpu: 7166 },
];
