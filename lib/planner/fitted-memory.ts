import type { MemoryConstants } from './memory-constants';

/** Written by bench/fit-memory.ts from the published rows whose licence allows it; what each name means is in memory-constants.ts. */
export const FITTED_MEMORY: MemoryConstants = {
  activationEager: 0.9928,
  activationPlainMlp: 0.9758,
  activationCompiled: 0.9878,
  activationFused: 0.9375,
  activationLegacy: 0.9969,
  plainNormBytes: 11.97,
  keptByOp: 0.9496,
  logitBytes: 8.973,
  logitBytesTorch: 12.06,
  workingBytesPerParameter: 11.84,
  bufferGiB: 1.122,
  deepspeedBufferGiB: 5.61,
  deepspeedBf16GradientBytes: 3.999,
  nanotronGradientBytes: 5.009,
  keptHoles: 0.08456,
  stateWaste: 0.0585,
  fragmentation: 0.1536,
};
