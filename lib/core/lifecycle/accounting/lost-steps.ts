import type { FailureHistory } from '../../config/job-file';
import type { TimelineEvent } from '../action';
import { CLASS_POLICY } from '../budgets';
import { instancesOn } from '../capacity-options';
import type { Attempt, EpochMs, RunRecord } from '../record';
import { trainedMs } from './pauses';

/** A span of time that the ledger moves to another cause, because the steps made in it were not kept. */
interface Rebooking {
  from: EpochMs;
  to: EpochMs;
  cause: 'lost' | 'hang';
}

/** Steps of one start of the ranks, from its `first-step` and `last-step` events. */
interface Stepping {
  attempt: number;
  start: number;
  first: number;
  firstAt: EpochMs;
  last?: number;
  lastAt?: EpochMs;
  /** When the ranks had exited. */
  overAt?: EpochMs;
}

const ENDS = ['attempt-ended', 'ranks-restarted', 'run-stopped', 'run-failed', 'run-completed'];

/**
 * The time spent on steps that a later start repeated. If the driver reported step times, the first step of a start shows exactly which
 * earlier steps were kept; the steps in between are assumed to take equally long. If it did not, or no start follows, everything after the
 * last commit of a failed attempt is lost.
 */
export function lostTime(lines: readonly TimelineEvent[]): Rebooking[] {
  const timed = steppings(lines);
  return [...retaken(timed), ...afterLastCommit(lines, timed)];
}

function steppings(lines: readonly TimelineEvent[]): Stepping[] {
  const found: Stepping[] = [];
  for (const { what, at, evidence } of lines) {
    const { attempt, start, step } = evidence as { attempt?: number; start?: number; step?: number };
    if (ENDS.includes(what)) for (const s of found) s.overAt ??= at;
    if (attempt === undefined || start === undefined || step === undefined) continue;
    if (what === 'first-step') found.push({ attempt, start, first: step, firstAt: at });
    const own = found.filter((s) => s.attempt === attempt && s.start === start);
    if (what === 'last-step') for (const one of own) Object.assign(one, { last: step, lastAt: at });
  }
  return found;
}

/** For each start, the time of the steps that a later start repeated. */
function retaken(timed: readonly Stepping[]): Rebooking[] {
  return timed.flatMap((s, place): Rebooking[] => {
    const later = timed.slice(place + 1);
    if (later.length === 0 || s.last === undefined || s.lastAt === undefined) return [];
    const kept = Math.min(s.last, ...later.map((l) => l.first - 1));
    return [{ from: endOfStep(s, kept), to: s.overAt ?? s.lastAt, cause: 'lost' }];
  });
}

/** When the start finished this step, computed from its mean step time. */
function endOfStep({ first, firstAt, last = first, lastAt = firstAt }: Stepping, step: number): EpochMs {
  if (step < first) return firstAt;
  return last === first ? firstAt : firstAt + ((lastAt - firstAt) * (step - first)) / (last - first);
}

function afterLastCommit(lines: readonly TimelineEvent[], timed: readonly Stepping[]): Rebooking[] {
  const found: Rebooking[] = [];
  let began = Number.NEGATIVE_INFINITY;
  let intendedAt = Number.NEGATIVE_INFINITY;
  let movedAt: EpochMs | undefined;
  for (const line of lines) {
    if (line.what === 'attempt-intended') intendedAt = line.at;
    if (line.what === 'attempt-intended' || line.what === 'checkpoint-committed') began = line.at;
    if (line.what === 'stop-decided' && line.evidence.why === 'hang')
      movedAt = (line.evidence.progress as { movedAt?: EpochMs } | null)?.movedAt;
    if (line.what !== 'attempt-ended') continue;
    const own = timed.findLast((s) => s.firstAt >= intendedAt && s.firstAt <= line.at);
    const isRetaken = own?.lastAt !== undefined && timed[timed.length - 1] !== own;
    if (!isRetaken) found.push({ from: began, to: line.at, cause: 'lost' });
    if (line.evidence.failureClass === 'hang' && movedAt !== undefined)
      found.push({ from: Math.min(movedAt, own?.lastAt ?? movedAt), to: line.at, cause: 'hang' });
    movedAt = undefined;
  }
  return found;
}

/** Whether training failed: not when it completed, was stopped, or left for a reason that is no failure. */
const isFailure = ({ failureClass }: Attempt): boolean =>
  failureClass !== undefined &&
  failureClass !== 'completed' &&
  failureClass !== 'stopped' &&
  !CLASS_POLICY[failureClass].isNoFailure;

/** Failures of the finished attempts, and the node-days in which they happened: the trainer derives its save interval from them. */
export function failureHistory(attempts: readonly Attempt[], record: Pick<RunRecord, 'policy'>): FailureHistory {
  const ended = attempts.filter((a) => a.endedAt !== undefined && a.trainingStartedAt !== undefined);
  const { spareInstances } = record.policy;
  // The trainer multiplies the rate by the number of hosts that train.
  const nodes = (capacityOptionId: string) => Math.max(0, instancesOn(record, capacityOptionId) - spareInstances);
  const days = (a: Attempt) => trainedMs(a, a.endedAt ?? 0) / 86_400_000;
  const failed = ended.filter(isFailure).length;
  return {
    failures: ended.reduce((sum, a) => sum + (a.progress?.vitals?.restarts ?? 0), failed),
    nodeDays: ended.reduce((sum, a) => sum + days(a) * nodes(a.capacityOptionId), 0),
  };
}
