import type { FailureHistory } from '../config/job-file';
import { trainedMs, WAITS_FOR_INSTANCES } from './accounting/pauses';
import type { TimelineEvent } from './action';
import { CLASS_POLICY } from './budgets';
import { instancesOn } from './capacity-options';
import type { Attempt, EpochMs, RunRecord } from './record';

/** The causes to which the ledger assigns the time of a run; every second belongs to exactly one. */
export const CAUSES = [
  'queued',
  'pending',
  'startup',
  'warmup',
  'step',
  'save',
  'eval',
  'lost',
  'hang',
  'gap',
  'stopped',
] as const;
/** What the time of a run was spent on. */
export type Cause = (typeof CAUSES)[number];

export interface Ledger {
  seconds: Record<Cause, number>;
  totalSeconds: number;
  /**
   * Seconds of kept steps divided by all seconds since the first job was created; null while no step was seen, or when the steps of an
   * attempt were not seen.
   */
  goodput: number | null;
  /** Seconds of all restarts in place by phase, as their drivers counted them; absent without a restart. */
  restartSeconds?: Readonly<Record<string, number>>;
}

interface Span {
  from: EpochMs;
  to: EpochMs;
  cause: Cause;
}

const CAUSE_OF_PHASE: Readonly<Record<string, Cause>> = {
  start: 'warmup',
  save: 'save',
  eval: 'eval',
  rendezvous: 'warmup',
  prepare: 'warmup',
  load: 'warmup',
  compile: 'warmup',
  'first-step': 'warmup',
};
const CAUSE_OF_STATUS: Readonly<Record<string, Cause>> = {
  Starting: 'pending',
  Pending: 'pending',
  Downloading: 'startup',
  Training: 'warmup',
  Interrupted: 'gap',
  Restarting: 'gap',
  Uploading: 'save',
};
/** Causes that begin with an event, whatever it says. */
const CAUSE_OF_EVENT: Readonly<Record<string, Cause>> = {
  'run-intended': 'queued',
  'run-confirmed': 'queued',
  'run-preempted': 'queued',
  'room-returned': 'queued',
  'quota-wait': 'pending',
  'run-admitted': 'pending',
  'attempt-ended': 'gap',
  'run-stopped': 'stopped',
  'run-failed': 'stopped',
  'run-completed': 'stopped',
  'first-step': 'step',
  'last-step': 'save',
  'ranks-restarted': 'warmup',
};

const TRAINING: readonly Cause[] = ['step', 'save', 'eval'];
/** Statuses of a job from its creation to its first step; after an interruption it passes through `Interrupted` first. */
const BEFORE_STEPS: ReadonlySet<unknown> = new Set([...WAITS_FOR_INSTANCES, 'Downloading', 'Training']);

/** The cause that begins with a timeline event; undefined when the event does not change it. */
function causeAfter(line: TimelineEvent, before: Cause): Cause | undefined {
  // If the clock was set back, the end of a run can be recorded before events that happened earlier: only a resume continues the run.
  if (before === 'stopped' && line.what !== 'resume-asked') return undefined;
  switch (line.what) {
    case 'resume-asked':
      return before === 'stopped' ? 'queued' : undefined;
    case 'job-status':
      // When steps of the job have been seen already, a status from before them is an old answer of the service.
      return BEFORE_STEPS.has(line.evidence.secondaryStatus) && TRAINING.includes(before)
        ? undefined
        : CAUSE_OF_STATUS[String(line.evidence.secondaryStatus)];
    case 'phase':
      return CAUSE_OF_PHASE[String(line.evidence.phase)] ?? 'step';
    default:
      return CAUSE_OF_EVENT[line.what];
  }
}

/**
 * Assigns every second from the first event to `until` to one cause. Steps that had to be repeated are lost; the time after the last sign
 * of progress of an attempt that hung is the hang. Steps have the driver's timestamps; everything else has the time of the pass that
 * observed it.
 */
export function ledger(timeline: readonly TimelineEvent[], until: EpochMs): Ledger {
  const lines = [...timeline].sort((a, b) => a.at - b.at);
  const seconds = Object.fromEntries(CAUSES.map((cause) => [cause, 0])) as Record<Cause, number>;
  const spans = lostTime(lines).reduce(
    (booked, { from, to, cause }) => rebook(booked, from, to, cause),
    spansOf(lines, until),
  );
  for (const { from, to, cause } of spans) seconds[cause] += (to - from) / 1000;
  const createdAt = lines.find((l) => l.what === 'job-created' || l.what === 'job-adopted')?.at;
  const totalSeconds = spans.reduce((sum, s) => sum + (s.to - s.from) / 1000, 0);
  const restartSeconds = restartPhases(lines);
  return {
    seconds,
    totalSeconds,
    goodput: createdAt === undefined ? null : goodput(seconds, createdAt, lines, spans),
    ...(restartSeconds && { restartSeconds }),
  };
}

/** The phases of all starts but the first of an attempt, summed. */
function restartPhases(lines: readonly TimelineEvent[]): Record<string, number> | undefined {
  const sums: Record<string, number> = {};
  for (const { what, evidence } of lines) {
    if (what !== 'first-step' || !evidence.start) continue;
    for (const [phase, seconds] of Object.entries((evidence.phases ?? {}) as Record<string, number>))
      sums[phase] = (sums[phase] ?? 0) + seconds;
  }
  return Object.keys(sums).length > 0 ? sums : undefined;
}

function goodput(
  seconds: Record<Cause, number>,
  createdAt: EpochMs,
  lines: readonly TimelineEvent[],
  spans: readonly Span[],
): number | null {
  // When a run is over, its last span ends with it, whatever was recorded afterwards.
  const end = spans.reduce((latest, { to }) => Math.max(latest, to), createdAt);
  const wall = (end - createdAt) / 1000;
  const isSeen = lines.some((l) => l.what === 'first-step') && !lines.some((l) => l.what === 'steps-unseen');
  if (!isSeen) return null;
  return wall > 0 ? seconds.step / wall : null;
}

function spansOf(lines: readonly TimelineEvent[], until: EpochMs): Span[] {
  const spans: Span[] = [];
  let cause: Cause = 'queued';
  let from = lines[0]?.at ?? until;
  for (const line of lines) {
    const next = causeAfter(line, cause);
    if (next === undefined) continue;
    spans.push({ from, to: line.at, cause });
    cause = next;
    from = line.at;
  }
  // Time after the end of a run is not counted.
  const end = cause === 'stopped' && lines[lines.length - 1]?.what !== 'resume-asked' ? from : until;
  spans.push({ from, to: Math.max(from, end), cause });
  return spans.filter((s) => s.to > s.from);
}

const REBOOKED: readonly Cause[] = ['step', 'save', 'eval', 'lost'];

function rebook(spans: Span[], from: EpochMs, to: EpochMs, cause: Cause): Span[] {
  return spans.flatMap((span) => {
    const start = Math.max(span.from, from);
    const end = Math.min(span.to, to);
    if (start >= end || !REBOOKED.includes(span.cause)) return [span];
    const parts: Span[] = [
      { from: span.from, to: start, cause: span.cause },
      { from: start, to: end, cause },
      { from: end, to: span.to, cause: span.cause },
    ];
    return parts.filter((p) => p.to > p.from);
  });
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
export function lostTime(lines: readonly TimelineEvent[]): Span[] {
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
function retaken(timed: readonly Stepping[]): Span[] {
  return timed.flatMap((s, place): Span[] => {
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

function afterLastCommit(lines: readonly TimelineEvent[], timed: readonly Stepping[]): Span[] {
  const found: Span[] = [];
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
