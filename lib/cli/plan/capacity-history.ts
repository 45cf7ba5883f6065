import { eachInTurn } from '../../aws/pace';
import type { StatusAnswer } from '../../contracts/control';
import type { TimelineEvent } from '../../lifecycle/action';
import { ledger } from '../../lifecycle/ledger';
import { type CapacityHistory, NO_HISTORY } from '../../planner/deadline/course';
import type { Descriptor } from '../../spec/descriptor';
import { readRuns, readStatus } from '../runs/read-status';

/** Runs that are looked into, newest first, and how many at once. */
const MOST_RUNS = 40;
const AT_ONCE = 8;

/** Waits and interruptions that the team's newest runs on this instance type have seen, by kind of capacity. */
export async function readHistory(
  descriptor: Descriptor,
  instanceType: string,
): Promise<Partial<Record<'on-demand' | 'spot', CapacityHistory>>> {
  const runs = await readRuns(descriptor, { limit: MOST_RUNS });
  const begun = runs.filter(({ attempts }) => attempts.some(({ startedAt }) => startedAt !== null));
  const wanted = { timeline: true, configuration: true } as const;
  const statuses = await eachInTurn(begun, AT_ONCE, ({ runId }) => readStatus(descriptor, runId, wanted));
  return historyOf(statuses, instanceType);
}

/** What runs on one instance type have seen. Capacity that is reserved says nothing about the others. */
export function historyOf(
  statuses: readonly StatusAnswer[],
  instanceType: string,
): Partial<Record<'on-demand' | 'spot', CapacityHistory>> {
  const found: Partial<Record<'on-demand' | 'spot', CapacityHistory>> = {};
  for (const status of statuses) {
    const compute = status.configuration?.spec.compute as { instanceType?: string; capacity?: string } | undefined;
    const kind = compute?.capacity;
    if (compute?.instanceType !== instanceType || (kind !== 'on-demand' && kind !== 'spot')) continue;
    found[kind] = added(found[kind] ?? NO_HISTORY, status);
  }
  return found;
}

function added(history: CapacityHistory, status: StatusAnswer): CapacityHistory {
  const lines = (status.timeline ?? []).map((line) => ({
    ...line,
    at: Date.parse(line.at),
    evidence: line.evidence as TimelineEvent['evidence'],
  }));
  const { seconds } = ledger(lines, Math.max(...lines.map(({ at }) => at), 0));
  const trainedHours = (seconds.step + seconds.save + seconds.eval + seconds.lost) / 3600;
  const interrupted = lines.filter((l) => l.what === 'job-status' && l.evidence.secondaryStatus === 'Interrupted');
  return {
    runs: history.runs + 1,
    waitsHours: [...history.waitsHours, ...waitsOf(status)],
    interruptions: history.interruptions + interrupted.length + status.attempts.length - 1,
    instanceHours: history.instanceHours + trainedHours * (status.attempts.at(-1)?.instanceCount ?? 1),
  };
}

/** From each job that was created to the start of its training. */
function waitsOf({ attempts, timeline = [] }: StatusAnswer): number[] {
  return attempts.flatMap(({ trainingJobName, startedAt }) => {
    const created = timeline.find(({ what, text }) => what === 'job-created' && text.includes(trainingJobName));
    if (!created || startedAt === null) return [];
    return [Math.max(0, Date.parse(startedAt) - Date.parse(created.at)) / 3_600_000];
  });
}
