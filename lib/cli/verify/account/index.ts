import { CATALOG_PROBES } from './probes/read-catalog';
import { NETWORK_PROBES } from './probes/read-network';
import { PERMISSION_PROBES } from './probes/read-permissions';
import { QUOTA_PROBES } from './probes/read-quotas';

export { LEVELS, type Level, requireAssumption } from './assumptions';
export { deployFile, deployWorld, type RunCdk, VERIFY_ENVIRONMENT } from './deploy/deploy-world';
export { type Probe, type ProbeResult, type ReadWorld, readWorld, runProbe } from './probe';
export { DEPLOY_PROBES } from './probes/deploy';
export { EFA_PROBES, type EfaObservation, type EfaWorld, type HealthEvent } from './probes/efa';
/** Level `read`: free of charge, changes nothing. */
export const READ_PROBES = [...PERMISSION_PROBES, ...NETWORK_PROBES, ...QUOTA_PROBES, ...CATALOG_PROBES];
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
