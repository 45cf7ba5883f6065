import type { MemoryConstants } from './memory-constants';

/** Written by bench/fit-memory.ts from the published rows whose licence allows it; what each name means is in memory-constants.ts. */
export const FITTED_MEMORY: MemoryConstants = {
  activationEager: 0.9874,
  activationPlainMlp: 0.9763,
  activationCompiled: 1.065,
  activationFused: 0.9175,
  activationLegacy: 0.9902,
  plainNormBytes: 15.06,
  keptByOp: 0.9067,
  logitBytes: 8.995,
  logitBytesTorch: 11.92,
  workingBytesPerParameter: 7.087,
  bufferGiB: 1.088,
  deepspeedBufferGiB: 5.468,
  deepspeedBf16GradientBytes: 4,
  nanotronGradientBytes: 5.003,
  stateWaste: 0.05305,
  fragmentation: 0.1451,
};
