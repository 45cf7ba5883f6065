/** Named figures of the memory model. */
export interface MemoryConstants {
  activationEager: number;
  activationCompiled: number;
  activationFused: number;
  logitBytes: number;
  logitBytesCompiled: number;
  workingBytesPerParameter: number;
  bufferGiB: number;
  deepspeedBufferGiB: number;
  deepspeedBf16GradientBytes: number;
  fragmentation: number;
}

export const MEMORY_CONSTANTS: MemoryConstants = {
  activationEager: 1.0,
  activationCompiled: 0.9,
  activationFused: 0.95,
  logitBytes: 10,
  logitBytesCompiled: 8,
  workingBytesPerParameter: 8,
  bufferGiB: 0.8,
  deepspeedBufferGiB: 4,
  deepspeedBf16GradientBytes: 4,
  fragmentation: 0.05,
};
