import type { StatusAnswer } from '../../core/contracts/control';
import { ledger } from '../../core/lifecycle/ledger';
import { type CapacityHistory, NO_HISTORY } from '../../core/planner/deadline/course';

/** The data used from a run: its status with timeline and configuration. */
export type SeenRun = Pick<StatusAnswer, 'attempts' | 'timeline' | 'configuration'>;

/** Number of a team's newest runs to inspect, and number of concurrent requests. */
export const HISTORY = { runs: 40, atOnce: 8 } as const;

/** Runs that have started training; others provide no history. */
export const begunOf = <R extends Pick<SeenRun, 'attempts'>>(runs: readonly R[]): R[] =>
  runs.filter(({ attempts }) => attempts.some(({ startedAt }) => startedAt !== null));

/**
 * Waiting times and interruptions of runs on one instance type, by kind of capacity. Reserved capacity is not included, because it says
 * nothing about the other kinds.
 */
export function historyOf(
  statuses: readonly SeenRun[],
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

function added(history: CapacityHistory, status: SeenRun): CapacityHistory {
  const lines = (status.timeline ?? []).map((line) => ({ ...line, at: Date.parse(line.at) }));
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

/** Time from the creation of each job to the start of its training. */
function waitsOf({ attempts, timeline = [] }: SeenRun): number[] {
  return attempts.flatMap(({ trainingJobName, startedAt }) => {
    const created = timeline.find(({ what, text }) => what === 'job-created' && text.includes(trainingJobName));
    if (!created || startedAt === null) return [];
    return [Math.max(0, Date.parse(startedAt) - Date.parse(created.at)) / 3_600_000];
  });
}
