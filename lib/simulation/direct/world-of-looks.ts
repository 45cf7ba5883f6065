import type { DescribeTrainingJobCommandOutput } from '@aws-sdk/client-sagemaker';
import { TICK_SECONDS } from '../../contracts/launcher';
import { presentJob } from '../../handlers/reconcile/observe/describe';
import type { PresentJob } from '../../lifecycle/observed';
import type { VirtualClock } from '../core/clock';
import type { Gateway } from '../core/gateway';
import type { SimTable } from '../services/dynamodb';
import type { StateFaults } from '../world/faults/state-faults';
import type { SimRun } from '../world/sim-run';

/** The function's answer after a message without failures. */
export const NOTHING_FAILED = { batchItemFailures: [] };
/** Upper bound on the time of all calls of one pass. */
export const LOOK_MS = 2000;
/** Interval between two ticks of the schedule. */
export const TICK_MS = TICK_SECONDS * 1000;

const presentJobs = new WeakMap<object, PresentJob>();

/**
 * The job as the handler parses it from an answer of Describe; cached by answer object, which stays the same while the job does not change.
 */
export function presentOf(answer: object): PresentJob {
  const known = presentJobs.get(answer) ?? presentJob(answer as DescribeTrainingJobCommandOutput);
  presentJobs.set(answer, known);
  return known;
}

/** The parts of the simulated world that direct passes read. */
export interface WorldOfLooks {
  readonly clock: VirtualClock;
  readonly state: StateFaults;
  readonly table: SimTable;
  readonly gateway: Gateway;
  readonly names: { readonly tableName: string };
  findRun(runId: string): SimRun | undefined;
  /** The functions' clock. */
  functionsNow(): number;
  /** The current answer of Describe for a job. */
  describe(jobName: string): object;
}
