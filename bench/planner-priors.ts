import type { Constants } from '../lib/planner/constants';
import type { MemoryConstants } from '../lib/planner/memory-constants';
import type { Prior } from './least-squares';

const prior = (value: number, spread: number, low: number, high: number): Prior => ({ value, spread, low, high });

/** What each constant is believed to be before any row is read, and its bounds. */
export const TIME_PRIORS: Readonly<Record<keyof Constants, Prior>> = {
  gemmAmpere: prior(0.95, 0.1, 0.7, 1.05),
  gemmHopper: prior(0.9, 0.1, 0.6, 1.05),
  gemmFp8: prior(0.8, 0.15, 0.5, 1.05),
  blackwell: prior(1, 0.05, 0.6, 1.2),
  gemmTailSeconds: prior(4e-6, 0.5, 1e-6, 2e-5),
  memoryEfficiency: prior(0.85, 0.1, 0.6, 0.95),
  flashAmpere: prior(0.6, 0.2, 0.3, 0.9),
  flashHopper: prior(0.45, 0.2, 0.25, 0.8),
  flashTuned: prior(1.35, 0.15, 1, 1.9),
  fusedSoftmaxPasses: prior(6, 0.3, 2, 16),
  unfusedPasses: prior(12, 0.3, 6, 30),
  trafficEager: prior(1.2, 0.3, 0.5, 3),
  trafficCompiled: prior(0.7, 0.3, 0.2, 1.5),
  trafficFused: prior(0.7, 0.3, 0.2, 1.5),
  trafficLegacy: prior(1.2, 0.3, 0.5, 3),
  fp8CastTraffic: prior(3, 0.4, 0.5, 12),
  lossBytesPerLogit: prior(24, 0.3, 8, 60),
  wireEfficiency: prior(0.75, 0.1, 0.5, 0.95),
  latencyInside: prior(60e-6, 0.4, 1e-5, 3e-4),
  latencyAcross: prior(200e-6, 0.4, 3e-5, 2e-3),
  latencyPerNode: prior(20e-6, 0.2, 1e-6, 2e-4),
  overlapCost: prior(0.15, 0.2, 0.02, 0.5),
  deepspeedOverlapCost: prior(0.4, 0.4, 0.05, 1),
  tensorExposed: prior(0.5, 0.3, 0.1, 1.2),
  tensorExposedLegacy: prior(1, 0.2, 0.5, 1.5),
  tensorExposedEngine: prior(1.3, 0.1, 0.7, 4),
  contextExposed: prior(0.3, 0.4, 0.02, 1),
  pipelineExposed: prior(0.8, 0.4, 0.1, 2),
  gradientExposed: prior(0.2, 0.5, 0.02, 1),
  gradientExposedLegacy: prior(1, 0.2, 0.4, 1.5),
  reduceBytes: prior(3, 0.2, 2, 4),
  stepSeconds: prior(0.02, 0.6, 0.002, 0.1),
  jitterPerDoubling: prior(0.005, 0.5, 0.0005, 0.03),
  cpuAdamParametersPerSecond: prior(0.6e9, 0.4, 0.1e9, 3e9),
  legacyGemm: prior(0.95, 0.08, 0.75, 1.05),
  gemmTokens: prior(200, 0.5, 20, 800),
  misalignedGemm: prior(0.75, 0.1, 0.5, 1),
  gatherLossPerNode: prior(0.02, 0.5, 0.001, 0.1),
  flash1: prior(0.7, 0.2, 0.4, 1),
  accumulationTraffic: prior(1, 0.3, 0.3, 3),
};

/** The same for the memory model. */
export const MEMORY_PRIORS: Readonly<Record<keyof MemoryConstants, Prior>> = {
  activationEager: prior(1, 0.1, 0.6, 1.6),
  activationPlainMlp: prior(1, 0.1, 0.6, 1.6),
  activationCompiled: prior(1, 0.1, 0.6, 1.4),
  activationFused: prior(0.95, 0.15, 0.6, 1.4),
  activationLegacy: prior(1, 0.1, 0.7, 1.4),
  plainNormBytes: prior(16, 0.2, 8, 32),
  keptByOp: prior(0.9, 0.1, 0.6, 1.5),
  logitBytes: prior(9, 0.1, 6, 16),
  logitBytesTorch: prior(12, 0.05, 6, 16),
  workingBytesPerParameter: prior(8, 0.15, 4, 16),
  bufferGiB: prior(1, 0.3, 0.4, 3),
  deepspeedBufferGiB: prior(4, 0.3, 1, 8),
  deepspeedBf16GradientBytes: prior(4, 0.3, 2, 6),
  nanotronGradientBytes: prior(5, 0.1, 4, 6),
  stateWaste: prior(0.05, 0.3, 0.01, 0.12),
  fragmentation: prior(0.12, 0.3, 0.02, 0.25),
};
