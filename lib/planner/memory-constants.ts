/** Named figures of the memory model. */
export interface MemoryConstants {
  activationEager: number;
  activationPlainMlp: number;
  activationCompiled: number;
  activationFused: number;
  activationLegacy: number;
  plainNormBytes: number;
  keptByOp: number;
  logitBytes: number;
  logitBytesCompiled: number;
  workingBytesPerParameter: number;
  bufferGiB: number;
  deepspeedBufferGiB: number;
  deepspeedBf16GradientBytes: number;
  fragmentation: number;
}

export { FITTED_MEMORY as MEMORY_CONSTANTS } from './fitted-memory';
