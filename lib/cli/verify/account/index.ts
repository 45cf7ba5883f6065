export { LEVELS, type Level, requireAssumption } from './assumptions';
export { deployFile, deployWorld, type RunCdk, VERIFY_ENVIRONMENT } from './deploy/deploy-world';
export { type Probe, type ProbeResult, type ReadWorld, readWorld, runProbe } from './probe';
export { DEPLOY_PROBES } from './probes/deploy';
export { EFA_PROBES, type EfaObservation, type EfaWorld, type HealthEvent } from './probes/efa';
export { READ_PROBES } from './probes/read';
export { TRAIN_PROBES } from './probes/train';
export {
  answeredIn,
  counts,
  EFA_SECONDS,
  maskedAccount,
  mostCost,
  recordProblems,
  type VerifyRecord,
} from './record';
export type { JobPlace } from './train/train-jobs';
export { cleanUpTraining, type TrainWorld, trainWorld } from './train/train-world';
