/**
 * Named efficiencies of the time model, fitted by `bench/fit-planner.ts` (see docs/planner.md). The prior of each, and how far data may
 * move it, is in `bench/planner-priors.ts`.
 */
export interface Constants {
  /** Large bf16 matrix products (Ampere; Hopper and later), as a share of the best measured product on that GPU. */
  gemmAmpere: number;
  gemmHopper: number;
  /** Large fp8 matrix products, as a share of the best measured fp8 product. */
  gemmFp8: number;
  /** Blackwell relative to Hopper, each relative to its own best product. */
  blackwell: number;
  /** Matrix products of Megatron before 2023, relative to later versions. */
  legacyGemm: number;
  /** Fixed overhead of one matrix product. */
  gemmTailSeconds: number;
  /** Number of tokens at which a matrix product loses half of its rate to partially filled tiles. */
  gemmTokens: number;
  /**
   * Inner size of an expert at which its products lose half of their rate: the products of all experts are one kernel over small matrices.
   */
  expertWidth: number;
  /**
   * How often the copy of a token for one of its experts is read or written on its way there and back, not counting the matrix products.
   */
  expertPasses: number;
  /** Time that the host needs to launch the forward kernels of one block with experts in Megatron-Core. */
  expertHostSeconds: number;
  /** Relative rate of products whose shards do not fill 128-byte lines. */
  misalignedGemm: number;
  /** Memory bandwidth that kernels reach, as a share of the data sheet's. */
  memoryEfficiency: number;
  /** FlashAttention-2 forward (Ampere; Hopper), as a share of the best bf16 product. */
  flashAmpere: number;
  flashHopper: number;
  /** Attention kernels of Transformer Engine and JAX relative to FlashAttention-2, from Hopper on. */
  flashTuned: number;
  /** FlashAttention-1 and similar kernels relative to FlashAttention-2. */
  flash1: number;
  /** How often the score matrix is read or written in one forward pass: with fused softmax, and with plain operations. */
  fusedSoftmaxPasses: number;
  unfusedPasses: number;
  /** Elementwise memory traffic relative to the minimum of a block: eager, compiled and fused kernels, and Megatron before 2023. */
  trafficEager: number;
  trafficCompiled: number;
  trafficFused: number;
  trafficLegacy: number;
  /** Bytes per operand element that are moved by casting to fp8. */
  fp8CastTraffic: number;
  /** Bytes that the loss moves per logit, forward and backward. */
  lossBytesPerLogit: number;
  /** Accumulation of gradients over micro-batches, relative to reading and writing them once. */
  accumulationTraffic: number;
  /** Network bandwidth that collectives reach, as a share of the line rate. */
  wireEfficiency: number;
  /**
   * Duration in seconds at which a collective reaches half of its bandwidth: inside a node, across nodes, and what each further node adds.
   */
  latencyInside: number;
  latencyAcross: number;
  latencyPerNode: number;
  /** Loss of bandwidth per node in libraries that gather tensor by tensor. */
  gatherLossPerNode: number;
  /**
   * Exponent of the ring's number of ranks by which ZeRO-1 and ZeRO-2 slow down when they reduce gradients and gather parameters after the
   * last backward pass.
   */
  gradientCrowding: number;
  /**
   * Slowdown of computation and communication that run at the same time, relative to the shorter of the two; the second value is for
   * libraries that prefetch little.
   */
  overlapCost: number;
  deepspeedOverlapCost: number;
  /** Share of tensor-parallel communication that is not hidden: with overlap, and without. */
  tensorExposed: number;
  tensorExposedLegacy: number;
  /**
   * The same for DeepSpeed's 3D engine with ZeRO, relative to the time of moving the bytes: kernel launches and waits between small kernels
   * add to it.
   */
  tensorExposedEngine: number;
  /** Fixed overhead of a tensor-parallel collective that waits for the product before it and delays the next one. */
  tensorGapSeconds: number;
  contextExposed: number;
  pipelineExposed: number;
  /** Share of the gradient reduction that the backward pass does not hide: with overlap, and without. */
  gradientExposed: number;
  gradientExposedLegacy: number;
  /** Bytes per gradient that FSDP reduce-scatters: between bf16 and fp32. */
  reduceBytes: number;
  /** Data loading, logging, gradient norm and launch of the optimizer, seconds per step. */
  stepSeconds: number;
  /** Time lost waiting for the slowest node, per doubling of the number of nodes. */
  jitterPerDoubling: number;
  /** Parameters per second that DeepSpeed's CPU Adam updates for one GPU. */
  cpuAdamParametersPerSecond: number;
}
