import type { MemoryConstants } from './memory-constants';

/** Written by bench/fit-memory.ts from the published rows whose licence allows it; what each name means is in memory-constants.ts. */
export const FITTED_MEMORY: MemoryConstants = {
  activationEager: 0.9045,
  activationCompiled: 0.732,
  activationFused: 0.95,
  activationLegacy: 0.984,
  plainNormBytes: 20.6,
  keptByOp: 0.4678,
  logitBytes: 9.236,
  logitBytesCompiled: 12.46,
  workingBytesPerParameter: 4,
  bufferGiB: 0.7623,
  deepspeedBufferGiB: 3.759,
  deepspeedBf16GradientBytes: 3.773,
  fragmentation: 0.06831,
};
