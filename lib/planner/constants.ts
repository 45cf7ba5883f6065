/**
 * Named efficiencies of the time model. Their values are fitted by `bench/fit-planner.ts` (see docs/planner.md); what is believed of
 * each without data, and how far data may move it, is in `bench/planner-priors.ts`.
 */
export interface Constants {
  /** Large bf16 products on Ampere, Hopper and after, of the best measured product on that GPU. */
  gemmAmpere: number;
  gemmHopper: number;
  /** Large fp8 products, of the best measured fp8 product. */
  gemmFp8: number;
  /** Blackwell over Hopper, both relative to their own best product. */
  blackwell: number;
  /** Products of Megatron before 2023, relative to later ones. */
  legacyGemm: number;
  /** Start and end of one product. */
  gemmTailSeconds: number;
  /** Tokens at which a product loses half of its rate to unfilled tiles. */
  gemmTokens: number;
  /** Inner size of an expert at which its products lose half of their rate: those of all experts are one kernel over small matrices. */
  expertWidth: number;
  /** Times that the copy of a token for one of its experts is read or written on its way there and back, products left out. */
  expertPasses: number;
  /** Rate of products whose shards do not fill 128-byte lines. */
  misalignedGemm: number;
  /** Memory bandwidth that kernels reach, of the data sheet's. */
  memoryEfficiency: number;
  /** FlashAttention-2 forward, of the best bf16 product. */
  flashAmpere: number;
  flashHopper: number;
  /** Attention kernels of Transformer Engine and JAX over FlashAttention-2, from Hopper on. */
  flashTuned: number;
  /** FlashAttention-1 and its like over FlashAttention-2. */
  flash1: number;
  /** Times the score matrix passes memory in one forward pass: fused softmax, and plain operations. */
  fusedSoftmaxPasses: number;
  unfusedPasses: number;
  /** Elementwise traffic over the least a block needs: eager, compiled, fused kernels, Megatron before 2023. */
  trafficEager: number;
  trafficCompiled: number;
  trafficFused: number;
  trafficLegacy: number;
  /** Bytes per operand element that casting to fp8 moves. */
  fp8CastTraffic: number;
  /** Bytes the loss moves per logit, forward and backward. */
  lossBytesPerLogit: number;
  /** Adding up gradients over micro-batches, of reading and writing them once. */
  accumulationTraffic: number;
  /** Network bandwidth collectives reach, of the line rate. */
  wireEfficiency: number;
  /** Seconds at which a collective reaches half its bandwidth: inside a node, across nodes, and what each node adds. */
  latencyInside: number;
  latencyAcross: number;
  latencyPerNode: number;
  /** Loss of bandwidth with each node in libraries that gather tensor by tensor. */
  gatherLossPerNode: number;
  /** Power of a ring's ranks by which ZeRO-1 and ZeRO-2 slow down that reduce gradients and gather parameters after the last backward pass. */
  gradientCrowding: number;
  /** What communication beside computation costs both, of the shorter of the two; the second where little is prefetched. */
  overlapCost: number;
  deepspeedOverlapCost: number;
  /** Tensor-parallel communication that nothing hides: with overlap, and without. */
  tensorExposed: number;
  tensorExposedLegacy: number;
  /** The same under DeepSpeed's 3D engine with ZeRO, over what moving the bytes takes: launches and waits between small kernels add to it. */
  tensorExposedEngine: number;
  /** Start and end of a tensor-parallel collective that waits for the product before it and keeps the next one waiting. */
  tensorGapSeconds: number;
  contextExposed: number;
  pipelineExposed: number;
  /** Reduction of gradients that the backward pass does not hide: with overlap, and without. */
  gradientExposed: number;
  gradientExposedLegacy: number;
  /** Bytes per gradient that FSDP scatters: between bf16 and fp32. */
  reduceBytes: number;
  /** Data, logging, gradient norm and launch of the optimizer, once a step. */
  stepSeconds: number;
  /** Waiting for the slowest node, with each doubling of the nodes. */
  jitterPerDoubling: number;
  /** Parameters a second that DeepSpeed's CPU Adam updates for one GPU. */
  cpuAdamParametersPerSecond: number;
}
