import { checkpointPlan } from '../../lib/core/planner/run/failures';
import type { Constants } from './constants';

/** 70B parameters with Adam on ml.p5.48xlarge. */
const PARAMETERS = 70.6e9;
const GPUS_PER_NODE = 8;
const NETWORK_GBPS = 3200;
/** The planner's figure is a best case. */
const PATIENCE = 2;

/** Seconds from a save's start to its COMMITTED.json. */
export function saveUploadSeconds(constants: Constants, nodes: number): number {
  const { saveSeconds } = checkpointPlan(PARAMETERS, nodes, GPUS_PER_NODE, NETWORK_GBPS);
  return constants.saveUploadSeconds ?? PATIENCE * saveSeconds;
}
