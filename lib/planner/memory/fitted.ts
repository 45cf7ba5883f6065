import type { MemoryConstants } from './constants';

/** Written by bench/fit-memory.ts from the published rows whose licence allows it; what each name means is in constants.ts. */
export const FITTED_MEMORY: MemoryConstants = {
  activationEager: 0.9931,
  activationPlainMlp: 0.9762,
  activationCompiled: 0.9877,
  activationFused: 0.9375,
  activationLegacy: 0.9969,
  plainNormBytes: 11.97,
  keptByOp: 0.9498,
  logitBytes: 8.974,
  logitBytesTorch: 12.05,
  workingBytesPerParameter: 11.84,
  bufferGiB: 1.119,
  deepspeedBufferGiB: 5.612,
  deepspeedBf16GradientBytes: 3.999,
  nanotronGradientBytes: 5.009,
  keptHoles: 0.08434,
  stateWaste: 0.05856,
  fragmentation: 0.1537,
};
