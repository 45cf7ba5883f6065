import { STATE_BYTES_PER_PARAMETER } from '../../lib/core/distribution/memory-copies';
import { checkpointPlan } from '../../lib/core/planner/run/failures';
import type { Constants } from './constants';

/** 70B parameters with Adam on ml.p5.48xlarge. */
const BYTES = 70.6e9 * STATE_BYTES_PER_PARAMETER;
const CLUSTER = { gpusPerNode: 8, networkGbps: 3200 };
/** The planner's figures are best cases. */
const PATIENCE = 2;

/** Saves of a job with so many nodes, unless the constants say otherwise. */
export function savesOf(constants: Constants, nodes: number): { blockedSeconds: number; uploadSeconds: number } {
  const plan = checkpointPlan(BYTES, { ...CLUSTER, nodes });
  return {
    blockedSeconds: constants.slipway.saveBlockedSeconds ?? PATIENCE * plan.blockedSeconds,
    uploadSeconds: constants.saveUploadSeconds ?? PATIENCE * plan.saveSeconds,
  };
}
