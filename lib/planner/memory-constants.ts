/** Named figures of the memory model, fitted by `bench/fit-memory.ts`; priors in `bench/planner-priors.ts`. */
export interface MemoryConstants {
  /** Activations kept over the textbook count: eager gated and plain blocks, compiled, fused kernels, Megatron before 2023. */
  activationEager: number;
  activationPlainMlp: number;
  activationCompiled: number;
  activationFused: number;
  activationLegacy: number;
  /** Bytes per hidden element that a block's RMSNorms and rotary embedding keep when written as plain operations. */
  plainNormBytes: number;
  /** Share of a block that per-operation checkpointing keeps. */
  keptByOp: number;
  /** Bytes per logit at the peak: of vocabulary-parallel losses, and of torch's cross-entropy. */
  logitBytes: number;
  logitBytesTorch: number;
  /** Bytes per parameter of the largest gathered unit: itself, the next one, and its gradient. */
  workingBytesPerParameter: number;
  /** Workspaces and communication buffers inside the allocator. */
  bufferGiB: number;
  /** Buckets DeepSpeed keeps besides. */
  deepspeedBufferGiB: number;
  deepspeedBf16GradientBytes: number;
  /** nanotron keeps fp32 gradients, and 16-bit ones until they are added. */
  nanotronGradientBytes: number;
  /** Reserved over allocated memory, less one: of what lives from step to step, and of what comes and goes. */
  stateWaste: number;
  fragmentation: number;
}

export { FITTED_MEMORY as MEMORY_CONSTANTS } from './fitted-memory';
