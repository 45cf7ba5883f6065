import type { DescribeTrainingJobCommandOutput } from '@aws-sdk/client-sagemaker';
import { TICK_SECONDS } from '../../contracts/launcher';
import { presentJob } from '../../handlers/reconcile/observe/describe';
import type { PresentJob } from '../../lifecycle/observed';
import type { VirtualClock } from '../core/clock';
import type { Gateway } from '../core/gateway';
import type { SimTable } from '../services/dynamodb';
import type { StateFaults } from '../world/faults/state-faults';
import type { SimRun } from '../world/sim-run';

/** What the function answers after a message that went well. */
export const NOTHING_FAILED = { batchItemFailures: [] };
/** Longer than the calls of one look take together. */
export const LOOK_MS = 2000;
/** Between two ticks of the schedule. */
export const TICK_MS = TICK_SECONDS * 1000;

const presentJobs = new WeakMap<object, PresentJob>();

/** What the handler takes from an answer of Describe, which stays the same while the job does. */
export function presentOf(answer: object): PresentJob {
  const known = presentJobs.get(answer) ?? presentJob(answer as DescribeTrainingJobCommandOutput);
  presentJobs.set(answer, known);
  return known;
}

/** What is asked of the simulated world. */
export interface WorldOfLooks {
  readonly clock: VirtualClock;
  readonly state: StateFaults;
  readonly table: SimTable;
  readonly gateway: Gateway;
  readonly names: { readonly tableName: string };
  findRun(runId: string): SimRun | undefined;
  /** The clock that functions read. */
  functionsNow(): number;
  /** What Describe says of a job now. */
  describe(jobName: string): object;
}
