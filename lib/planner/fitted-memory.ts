import type { MemoryConstants } from './memory-constants';

/** Written by bench/fit-memory.ts from the published rows whose licence allows it; what each name means is in memory-constants.ts. */
export const FITTED_MEMORY: MemoryConstants = {
  activationEager: 0.9856,
  activationPlainMlp: 0.8889,
  activationCompiled: 0.9553,
  activationFused: 0.95,
  activationLegacy: 0.9849,
  plainNormBytes: 20.05,
  keptByOp: 0.4275,
  logitBytes: 9.438,
  logitBytesCompiled: 12,
  workingBytesPerParameter: 4.476,
  bufferGiB: 0.9342,
  deepspeedBufferGiB: 3.454,
  deepspeedBf16GradientBytes: 3.483,
  fragmentation: 0.08787,
};
