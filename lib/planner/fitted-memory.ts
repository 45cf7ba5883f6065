import type { MemoryConstants } from './memory-constants';

/** Written by bench/fit-memory.ts from the published rows whose licence allows it; what each name means is in memory-constants.ts. */
export const FITTED_MEMORY: MemoryConstants = {
  activationEager: 0.9816,
  activationPlainMlp: 0.8681,
  activationCompiled: 0.9389,
  activationFused: 0.95,
  activationLegacy: 0.9736,
  plainNormBytes: 19.05,
  keptByOp: 0.4794,
  logitBytes: 9.457,
  logitBytesCompiled: 12.56,
  workingBytesPerParameter: 4,
  bufferGiB: 1.009,
  deepspeedBufferGiB: 3.384,
  deepspeedBf16GradientBytes: 3.417,
  fragmentation: 0.1,
};
