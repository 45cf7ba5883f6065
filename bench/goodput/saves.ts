import { STATE_BYTES_PER_PARAMETER } from '../../lib/core/distribution/memory-copies';
import { checkpointPlan, saveCostSeconds } from '../../lib/core/planner/run/failures';
import type { Constants } from './constants';

/** 70B parameters with Adam on ml.p5.48xlarge. */
const BYTES = 70.6e9 * STATE_BYTES_PER_PARAMETER;
const CLUSTER = { gpusPerNode: 8, networkGbps: 3200 };
/** The planner's figures are best cases. */
const PATIENCE = 2;

/** What saves of a job with so many nodes cost, in seconds of training, and how long they take, unless the constants say otherwise. */
export function savesOf(constants: Constants, nodes: number): { costSeconds: number; uploadSeconds: number } {
  const { memory, saveBlockedSeconds } = constants.slipway;
  const plan = checkpointPlan(BYTES, { ...CLUSTER, nodes }, memory ? 1 : undefined);
  const uploadSeconds = constants.saveUploadSeconds ?? PATIENCE * plan.saveSeconds;
  const blockedSeconds = saveBlockedSeconds ?? PATIENCE * plan.blockedSeconds;
  return { costSeconds: saveCostSeconds({ blockedSeconds, saveSeconds: uploadSeconds }), uploadSeconds };
}
