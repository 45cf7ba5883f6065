/**
 * Named efficiencies of the time model. `bench/fit-planner.ts` writes the values, from the published rows whose licence allows it (see
 * docs/planner.md). The prior of each, and how far data may move it, is in `bench/planner-priors.ts`.
 */
export const CONSTANTS = {
  /** Large bf16 matrix products (Ampere; Hopper and later), as a share of the best measured product on that GPU. */
  gemmAmpere: 0.9484,
  gemmHopper: 0.9039,
  /** Large fp8 matrix products, as a share of the best measured fp8 product. */
  gemmFp8: 1.036,
  /** Blackwell relative to Hopper, each relative to its own best product. */
  blackwell: 0.8958,
  /** Matrix products of Megatron before 2023, relative to later versions. */
  legacyGemm: 0.9733,
  /** Fixed overhead of one matrix product. */
  gemmTailSeconds: 0.000002999,
  /** Number of tokens at which a matrix product loses half of its rate to partially filled tiles. */
  gemmTokens: 57.62,
  /**
   * Inner size of an expert at which its products lose half of their rate: the products of all experts are one kernel over small matrices.
   */
  expertWidth: 686.2,
  /**
   * How often the copy of a token for one of its experts is read or written on its way there and back, not counting the matrix products.
   */
  expertPasses: 11.4,
  /** Time that the host needs to launch the forward kernels of one block with experts in Megatron-Core. */
  expertHostSeconds: 0.003428,
  /** Relative rate of products whose shards do not fill 128-byte lines. */
  misalignedGemm: 0.643,
  /** Memory bandwidth that kernels reach, as a share of the data sheet's. */
  memoryEfficiency: 0.9062,
  /** FlashAttention-2 forward (Ampere; Hopper), as a share of the best bf16 product. */
  flashAmpere: 0.5907,
  flashHopper: 0.3327,
  /** Attention kernels of Transformer Engine and JAX relative to FlashAttention-2, from Hopper on. */
  flashTuned: 1.9,
  /** FlashAttention-1 and similar kernels relative to FlashAttention-2. */
  flash1: 0.7019,
  /** How often the score matrix is read or written in one forward pass: with fused softmax, and with plain operations. */
  fusedSoftmaxPasses: 5.98,
  unfusedPasses: 12,
  /** Elementwise memory traffic relative to the minimum of a block: eager, compiled and fused kernels, and Megatron before 2023. */
  trafficEager: 1.393,
  trafficCompiled: 1.203,
  trafficFused: 0.7622,
  trafficLegacy: 0.8803,
  /** Bytes per operand element that are moved by casting to fp8. */
  fp8CastTraffic: 5.477,
  /** Bytes that the loss moves per logit, forward and backward. */
  lossBytesPerLogit: 40.3,
  /** Accumulation of gradients over micro-batches, relative to reading and writing them once. */
  accumulationTraffic: 0.45,
  /** Network bandwidth that collectives reach, as a share of the line rate. */
  wireEfficiency: 0.8245,
  /**
   * Duration in seconds at which a collective reaches half of its bandwidth: inside a node, across nodes, and what each further node adds.
   */
  latencyInside: 0.00005756,
  latencyAcross: 0.0002409,
  latencyPerNode: 0.00002059,
  /** Loss of bandwidth per node in libraries that gather tensor by tensor. */
  gatherLossPerNode: 0.01714,
  /**
   * Exponent of the ring's number of ranks by which ZeRO-1 and ZeRO-2 slow down when they reduce gradients and gather parameters after the
   * last backward pass.
   */
  gradientCrowding: 0.354,
  /**
   * Slowdown of computation and communication that run at the same time, relative to the shorter of the two; the second value is for
   * libraries that prefetch little.
   */
  overlapCost: 0.1751,
  deepspeedOverlapCost: 0.8687,
  /** Share of tensor-parallel communication that is not hidden: with overlap, and without. */
  tensorExposed: 0.2367,
  tensorExposedLegacy: 0.771,
  /**
   * The same for DeepSpeed's 3D engine with ZeRO, relative to the time of moving the bytes: kernel launches and waits between small kernels
   * add to it.
   */
  tensorExposedEngine: 1.852,
  /** Fixed overhead of a tensor-parallel collective that waits for the product before it and delays the next one. */
  tensorGapSeconds: 0.00006171,
  contextExposed: 0.2611,
  pipelineExposed: 0.6973,
  /** Share of the gradient reduction that the backward pass does not hide: with overlap, and without. */
  gradientExposed: 0.2702,
  gradientExposedLegacy: 0.9306,
  /** Bytes per gradient that FSDP reduce-scatters: between bf16 and fp32. */
  reduceBytes: 2.48,
  /** Data loading, logging, gradient norm and launch of the optimizer, seconds per step. */
  stepSeconds: 0.02086,
  /** Time lost waiting for the slowest node, per doubling of the number of nodes. */
  jitterPerDoubling: 0.003771,
  /** Parameters per second that DeepSpeed's CPU Adam updates for one GPU. */
  cpuAdamParametersPerSecond: 633800000,
};

/** Efficiencies of the time model. */
export type Constants = Record<keyof typeof CONSTANTS, number>;

/** Named constants of the memory model. `bench/fit-memory.ts` writes the values; the priors are in `bench/planner-priors.ts`. */
export const MEMORY_CONSTANTS = {
  /**
   * Kept activations relative to the textbook count: eager gated and eager plain blocks, compiled kernels, fused kernels, Megatron before
   * 2023.
   */
  activationEager: 0.9931,
  activationPlainMlp: 0.9762,
  activationCompiled: 0.9877,
  activationFused: 0.9375,
  activationLegacy: 0.9969,
  /**
   * Bytes per hidden element that a block's two RMSNorms keep when they are computed by plain operations: input in fp32, result in 16 bit.
   */
  plainNormBytes: 11.97,
  /** Share of a block that per-operation checkpointing keeps. */
  keptByOp: 0.9498,
  /** Bytes per logit at the peak: for vocabulary-parallel losses, and for PyTorch's cross-entropy. */
  logitBytes: 8.974,
  logitBytesTorch: 12.05,
  /**
   * Bytes per parameter of a gathered unit in the backward pass: units in use, prefetched and being released, and the gradient before and
   * after the reduction.
   */
  workingBytesPerParameter: 11.84,
  /** Workspaces and communication buffers inside the allocator. */
  bufferGiB: 1.119,
  /** Additional buckets of DeepSpeed. */
  deepspeedBufferGiB: 5.612,
  deepspeedBf16GradientBytes: 3.999,
  /** nanotron keeps fp32 gradients, and 16-bit gradients until they are accumulated. */
  nanotronGradientBytes: 5.009,
  /**
   * Holes between activations that are kept until the backward pass, as a share of their bytes: live tensors on both sides prevent their
   * release.
   */
  keptHoles: 0.08434,
  /** Reserved divided by allocated memory, minus one: for tensors that live across steps, and for temporary ones. */
  stateWaste: 0.05856,
  fragmentation: 0.1537,
};

/** Constants of the memory model. */
export type MemoryConstants = Record<keyof typeof MEMORY_CONSTANTS, number>;
