import type { MemoryConstants } from './memory-constants';

/** Written by bench/fit-memory.ts from the published rows whose licence allows it; what each name means is in memory-constants.ts. */
export const FITTED_MEMORY: MemoryConstants = {
  activationEager: 0.8975,
  activationCompiled: 0.7367,
  activationFused: 0.95,
  activationLegacy: 0.9812,
  plainNormBytes: 20.36,
  keptByOp: 0.4685,
  recomputedBlock: 1,
  gradientsAtPeak: 0.4901,
  logitBytes: 9.318,
  logitBytesCompiled: 12.53,
  workingBytesPerParameter: 4.459,
  bufferGiB: 0.7913,
  deepspeedBufferGiB: 4.269,
  deepspeedBf16GradientBytes: 4.442,
  fragmentation: 0.07,
};
