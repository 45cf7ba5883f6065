import type { MemoryConstants } from './memory-constants';

/** Written by bench/fit-memory.ts from the published rows whose licence allows it; what each name means is in memory-constants.ts. */
export const FITTED_MEMORY: MemoryConstants = {
  activationEager: 0.989,
  activationPlainMlp: 0.9762,
  activationCompiled: 1.07,
  activationFused: 0.9199,
  activationLegacy: 0.9917,
  plainNormBytes: 15.11,
  keptByOp: 0.9053,
  logitBytes: 8.97,
  logitBytesTorch: 12.19,
  workingBytesPerParameter: 7.043,
  bufferGiB: 1.087,
  deepspeedBufferGiB: 5.534,
  deepspeedBf16GradientBytes: 3.998,
  nanotronGradientBytes: 5.006,
  stateWaste: 0.05265,
  fragmentation: 0.1374,
};
