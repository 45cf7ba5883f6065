import { eachInTurn } from '../../aws/pace';
import { historyOf } from '../../report/read/capacity-history';
import type { Descriptor } from '../../spec/descriptor';
import { readRuns, readStatus } from '../runs/read-status';

/** Runs that are looked into, newest first, and how many at once. */
const MOST_RUNS = 40;
const AT_ONCE = 8;

/** Waits and interruptions that the team's newest runs on this instance type have seen, by kind of capacity. */
export async function readHistory(descriptor: Descriptor, instanceType: string): Promise<ReturnType<typeof historyOf>> {
  const runs = await readRuns(descriptor, { limit: MOST_RUNS });
  const begun = runs.filter(({ attempts }) => attempts.some(({ startedAt }) => startedAt !== null));
  const wanted = { timeline: true, configuration: true } as const;
  const statuses = await eachInTurn(begun, AT_ONCE, ({ runId }) => readStatus(descriptor, runId, wanted));
  return historyOf(statuses, instanceType);
}
