import type { AttemptAnswer, RunState, StatusAnswer } from '../../core/contracts/control';
import { type FleetRun, fleetRun, isAlike, outlook } from '../../core/lifecycle/accounting/outlook';
import { gpuHours, keptPool, runSpendUsd } from '../../core/lifecycle/accounting/spend';
import type { TimelineEvent } from '../../core/lifecycle/action';
import { instancesOn } from '../../core/lifecycle/capacity-options';
import { ledger } from '../../core/lifecycle/ledger';
import { type Attempt, type EpochMs, isOver, type RunRecord } from '../../core/lifecycle/record';
import { advanceUsage, NO_USAGE, queueOrder } from '../../core/queue/order';
import { holdsCapacity, isQueued, queuedRun, runningRun } from './queue-runs';
import type { RunStore } from './run-store';

/** Positions in the queue over all teams, 1 = next. */
export async function queuePositions(
  deps: { store: Pick<RunStore, 'findQueue'> },
  active: readonly RunRecord[],
  now: EpochMs,
): Promise<Map<string, number>> {
  const waiting = active.filter(isQueued).map((r) => queuedRun(r, {}));
  if (waiting.length === 0) return new Map();
  const running = active.filter(holdsCapacity).map((r) => runningRun(r, {}));
  const { usage = NO_USAGE, shares = {}, limits = {} } = (await deps.store.findQueue()) ?? {};
  const pools = Object.fromEntries(
    Object.entries(limits).map(([name, limit]) => [name, { limit, usedByOthers: 0, name }]),
  );
  const order = queueOrder(waiting, running, { shares, pools, usage: advanceUsage(usage, usage.held, now) }, now);
  return new Map(order.map((run, i) => [run.runId, i + 1]));
}

/** A run as `list` shows it: goodput and expected end need its timeline. */
export function runAnswer(
  record: RunRecord,
  attempts: readonly Attempt[],
  positions: ReadonlyMap<string, number>,
  now: EpochMs,
): StatusAnswer {
  const live = record.attempt?.phase === 'created' ? record.attempt : undefined;
  const { spareInstances: of } = record.policy;
  return {
    runId: record.runId,
    name: record.name,
    team: record.team,
    state: record.state satisfies RunState,
    desiredState: record.desired,
    reason: record.reason,
    createdAt: new Date(record.createdAt).toISOString(),
    attempt: record.attempt?.number ?? null,
    attempts: attempts.map((attempt) => attemptAnswer(attempt, record, now)),
    committedStep: record.committed?.step ?? null,
    step: record.attempt?.progress?.step ?? record.attempt?.lastStep ?? null,
    stepAt: isoOf(record.attempt?.progress?.starts?.findLast((start) => start.stepAt !== null)?.stepAt ?? undefined),
    loss: record.attempt?.progress?.vitals?.loss ?? null,
    goodput: null,
    spendUsd: runSpendUsd(record, now),
    ...(of > 0 && { spareInstances: { left: live?.progress?.vitals?.sparesLeft ?? null, of } }),
    queuePosition: positions.get(record.runId) ?? null,
    ...(record.tags && { tags: record.tags }),
    ...(record.note !== undefined && { note: record.note }),
    ...(record.after.length > 0 && { after: [...record.after] }),
    ...(record.policy.preemptible && { preemptible: true }),
    ...handOverAnswer(live),
    ...poolAnswer(record, now),
  };
}

function handOverAnswer(live: Attempt | undefined): Pick<StatusAnswer, 'handOver'> {
  if (!live?.handOver) return {};
  const { why, at } = live.handOver;
  return { handOver: { why, at: new Date(at).toISOString(), isRead: live.progress?.vitals?.handOver ?? false } };
}

/** May include a pool that another job has taken over: SageMaker is asked only after the keep-alive period. */
function poolAnswer(record: RunRecord, now: EpochMs): Pick<StatusAnswer, 'warmPool'> {
  const pool = keptPool(record);
  if (!pool || pool.until <= now) return {};
  return { warmPool: { until: new Date(pool.until).toISOString(), usdPerHour: pool.usdPerHour } };
}

function attemptAnswer(attempt: Attempt, record: RunRecord, now: EpochMs): AttemptAnswer {
  const instanceCount = attempt.selected?.instanceCount ?? instancesOn(record, attempt.capacityOptionId);
  const hours = gpuHours(record, attempt, attempt.endedAt ?? now);
  const { gpuUtilizationPercent } = attempt.progress?.vitals ?? {};
  return {
    number: attempt.number,
    trainingJobName: attempt.jobName,
    status: attempt.status,
    secondaryStatus: attempt.secondaryStatus,
    firstStep: attempt.firstStep,
    lastStep: attempt.lastStep,
    reason: attempt.reason,
    startedAt: isoOf(attempt.trainingStartedAt),
    endedAt: isoOf(attempt.endedAt),
    ...(instanceCount > 0 && { instanceCount }),
    ...(hours !== undefined && { gpuHours: Math.round(hours * 1000) / 1000 }),
    ...(gpuUtilizationPercent !== undefined && { gpuUtilizationPercent }),
  };
}

/** ISO 8601; null for a time that is not known. */
const isoOf = (at: EpochMs | undefined): string | null => (at === undefined ? null : new Date(at).toISOString());

/** The part of an answer about a run that needs its whole timeline. */
export type RunFigures = Pick<
  StatusAnswer,
  'goodput' | 'progressPercent' | 'etaAt' | 'etaInterval80' | 'interruptions'
>;

/** Number of the team's newest runs from which the end of a run is predicted. */
export const FLEET = 40;

/**
 * Goodput, interruptions and expected end of a run.
 * @param record with its newest attempt as of `now`
 * @param timeline all of its events until `now`
 * @param newest the newest runs of its team, for an expected end
 */
export function runFigures(
  record: RunRecord,
  timeline: readonly TimelineEvent[],
  newest: readonly RunRecord[],
  now: EpochMs,
): RunFigures {
  const booked = ledger(timeline, now);
  const interruptions = interruptionsIn(timeline);
  const fleet = fleetOf(record, newest, now);
  const { progressPercent, etaAt, etaInterval80 } = outlook(record, { ledger: booked, interruptions, fleet, now });
  return {
    goodput: booked.goodput,
    progressPercent: progressPercent === null ? null : Math.round(progressPercent * 10) / 10,
    etaAt: isoOf(etaAt ?? undefined),
    etaInterval80: etaInterval80 && [isoOf(etaInterval80[0]) ?? '', isoOf(etaInterval80[1]) ?? ''],
    interruptions,
  };
}

/** Whether a run may have an expected end, so that `runFigures` needs the newest runs of its team. */
export const mayHaveEnd = (run: RunRecord): boolean =>
  !isOver(run) && run.policy.totalSteps !== undefined && run.attempt !== undefined;

/** How often the team's other runs on the same instance types were interrupted. */
function fleetOf(own: RunRecord, newest: readonly RunRecord[], now: EpochMs): FleetRun[] {
  if (!mayHaveEnd(own)) return [];
  const others = newest.filter((other) => other.runId !== own.runId);
  return others.flatMap((other) => (isAlike(own, other) ? (fleetRun(other, now) ?? []) : []));
}

/** How often training was interrupted: by another attempt, by an interruption of the job's instances, or by an in-place restart. */
const interruptionsIn = (timeline: readonly TimelineEvent[]): number =>
  timeline.filter(
    ({ what, evidence }) =>
      what === 'attempt-ended' ||
      what === 'ranks-restarted' ||
      (what === 'job-status' && evidence.secondaryStatus === 'Interrupted'),
  ).length;
