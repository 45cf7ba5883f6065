/** Named efficiencies of the model. */
export interface Constants {
  gemmAmpere: number;
  gemmHopper: number;
  gemmFp8: number;
  blackwell: number;
  gemmTailSeconds: number;
  memoryEfficiency: number;
  flashAmpere: number;
  flashHopper: number;
  flashTuned: number;
  fusedSoftmaxPasses: number;
  unfusedPasses: number;
  trafficEager: number;
  trafficCompiled: number;
  trafficFused: number;
  trafficLegacy: number;
  fp8CastTraffic: number;
  lossBytesPerLogit: number;
  wireEfficiency: number;
  latencyInside: number;
  latencyAcross: number;
  latencyPerNode: number;
  overlapCost: number;
  deepspeedOverlapCost: number;
  tensorExposed: number;
  tensorExposedLegacy: number;
  contextExposed: number;
  pipelineExposed: number;
  gradientExposed: number;
  gradientExposedLegacy: number;
  reduceBytes: number;
  stepSeconds: number;
  jitterPerDoubling: number;
  cpuAdamParametersPerSecond: number;
  legacyGemm: number;
  gemmTokens: number;
  misalignedGemm: number;
  gatherLossPerNode: number;
  flash1: number;
  accumulationTraffic: number;
}

export { FITTED as CONSTANTS } from './fitted';
