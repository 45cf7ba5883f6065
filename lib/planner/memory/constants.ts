/** Named figures of the memory model, fitted by `bench/fit-memory.ts`; priors in `bench/planner-priors.ts`. */
export interface MemoryConstants {
  /** Activations kept over the textbook count: eager gated and plain blocks, compiled, fused kernels, Megatron before 2023. */
  activationEager: number;
  activationPlainMlp: number;
  activationCompiled: number;
  activationFused: number;
  activationLegacy: number;
  /** Bytes per hidden element that a block's two RMSNorms keep when written as plain operations: input in fp32, result in 16 bit. */
  plainNormBytes: number;
  /** Share of a block that per-operation checkpointing keeps. */
  keptByOp: number;
  /** Bytes per logit at the peak: of vocabulary-parallel losses, and of torch's cross-entropy. */
  logitBytes: number;
  logitBytesTorch: number;
  /** Bytes per parameter of a gathered unit in the backward pass: those in work, ahead and being freed, its gradient as made and as sent. */
  workingBytesPerParameter: number;
  /** Workspaces and communication buffers inside the allocator. */
  bufferGiB: number;
  /** Buckets DeepSpeed keeps besides. */
  deepspeedBufferGiB: number;
  deepspeedBf16GradientBytes: number;
  /** nanotron keeps fp32 gradients, and 16-bit ones until they are added. */
  nanotronGradientBytes: number;
  /** Holes between activations kept until the backward pass, of their bytes: tensors live on both sides, so nobody gets them back. */
  keptHoles: number;
  /** Reserved over allocated memory, less one: of what lives from step to step, and of what comes and goes. */
  stateWaste: number;
  fragmentation: number;
}
