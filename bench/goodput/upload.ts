import { STATE_BYTES_PER_PARAMETER } from '../../lib/core/distribution/memory-copies';
import { checkpointPlan } from '../../lib/core/planner/run/failures';
import type { Constants } from './constants';

/** 70B parameters with Adam on ml.p5.48xlarge. */
const BYTES = 70.6e9 * STATE_BYTES_PER_PARAMETER;
const CLUSTER = { gpusPerNode: 8, networkGbps: 3200 };
/** The planner's figure is a best case. */
const PATIENCE = 2;

/** Seconds from a save's start to its COMMITTED.json. */
export function saveUploadSeconds(constants: Constants, nodes: number): number {
  const { saveSeconds } = checkpointPlan(BYTES, { ...CLUSTER, nodes });
  return constants.saveUploadSeconds ?? PATIENCE * saveSeconds;
}
