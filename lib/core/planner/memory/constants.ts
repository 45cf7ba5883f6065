/** Named constants of the memory model, fitted by `bench/fit-memory.ts`; the priors are in `bench/planner-priors.ts`. */
export interface MemoryConstants {
  /**
   * Kept activations relative to the textbook count: eager gated and eager plain blocks, compiled kernels, fused kernels, Megatron before
   * 2023.
   */
  activationEager: number;
  activationPlainMlp: number;
  activationCompiled: number;
  activationFused: number;
  activationLegacy: number;
  /**
   * Bytes per hidden element that a block's two RMSNorms keep when they are computed by plain operations: input in fp32, result in 16 bit.
   */
  plainNormBytes: number;
  /** Share of a block that per-operation checkpointing keeps. */
  keptByOp: number;
  /** Bytes per logit at the peak: for vocabulary-parallel losses, and for PyTorch's cross-entropy. */
  logitBytes: number;
  logitBytesTorch: number;
  /**
   * Bytes per parameter of a gathered unit in the backward pass: units in use, prefetched and being released, and the gradient before and
   * after the reduction.
   */
  workingBytesPerParameter: number;
  /** Workspaces and communication buffers inside the allocator. */
  bufferGiB: number;
  /** Additional buckets of DeepSpeed. */
  deepspeedBufferGiB: number;
  deepspeedBf16GradientBytes: number;
  /** nanotron keeps fp32 gradients, and 16-bit gradients until they are accumulated. */
  nanotronGradientBytes: number;
  /**
   * Holes between activations that are kept until the backward pass, as a share of their bytes: live tensors on both sides prevent their
   * release.
   */
  keptHoles: number;
  /** Reserved divided by allocated memory, minus one: for tensors that live across steps, and for temporary ones. */
  stateWaste: number;
  fragmentation: number;
}
