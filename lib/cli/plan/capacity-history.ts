import type { Descriptor } from '../../core/config/descriptor';
import { begunOf, HISTORY, historyOf } from '../../report/read/capacity-history';
import { eachInTurn } from '../../shared/aws/pace';
import { readRuns, readStatus } from '../runs/read-status';

/** Waits and interruptions of the team's newest runs on this instance type, by kind of capacity. */
export async function readHistory(descriptor: Descriptor, instanceType: string): Promise<ReturnType<typeof historyOf>> {
  const begun = begunOf(await readRuns(descriptor, { limit: HISTORY.runs }));
  const wanted = { timeline: true, configuration: true } as const;
  const statuses = await eachInTurn(begun, HISTORY.atOnce, ({ runId }) => readStatus(descriptor, runId, wanted));
  return historyOf(statuses, instanceType);
}
