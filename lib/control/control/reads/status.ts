import type { AttemptAnswer, ListRequest, Refusal, RunState, StatusAnswer } from '../../../core/contracts/control';
import { runPrefixes } from '../../../core/job/plan';
import { type FleetRun, fleetRun, isAlike } from '../../../core/lifecycle/accounting/fleet-rate';
import { gpuHours } from '../../../core/lifecycle/accounting/gpu-hours';
import { type Outlook, outlook } from '../../../core/lifecycle/accounting/outlook';
import { keptPool, runSpendUsd } from '../../../core/lifecycle/accounting/spend';
import type { TimelineEvent } from '../../../core/lifecycle/action';
import { instancesOn } from '../../../core/lifecycle/capacity-options';
import { nextProgress } from '../../../core/lifecycle/health/hang';
import { stepEvents, stepsOf } from '../../../core/lifecycle/health/step-times';
import { ledger } from '../../../core/lifecycle/ledger';
import { type Attempt, type EpochMs, isOver, type RunRecord } from '../../../core/lifecycle/record';
import { queueOrder } from '../../../core/queue/order';
import { advanceUsage, NO_USAGE } from '../../../core/queue/usage';
import { readDescriptor } from '../../shared/descriptors';
import { readHeartbeat } from '../../shared/heartbeat';
import { holdsCapacity, isQueued, queuedRun, runningRun } from '../../shared/queue-runs';
import type { ReadDeps } from '../deps';
import { findOwnRun } from '../own-run';
import { isWanted } from './find-runs';
import { boundedTimeline } from './timeline';

/** The status of one run: what the control plane recorded, and what the driver has reported since. */
export async function statusOf(
  deps: ReadDeps,
  team: string,
  request: { runId: string; timeline: boolean; configuration: boolean },
): Promise<({ ok: true } & StatusAnswer) | Refusal> {
  const own = await findOwnRun(deps, team, request.runId);
  if ('ok' in own) return own;
  const now = deps.now().getTime();
  const [written, timeline, active, attempt, fleet] = await Promise.all([
    deps.store.attempts(own.runId),
    deps.store.timeline(own.runId),
    isQueued(own) ? deps.store.active() : [],
    liveAttempt(deps, own, now),
    fleetOf(deps, own, now),
  ]);
  const attempts = written.map((a) => (attempt && a.number === attempt.number ? attempt : a));
  const since = own.attempt && attempt ? stepEvents(own.attempt, attempt, now) : [];
  const booked = ledger([...timeline, ...since], now);
  const seen = { ...own, attempt };
  const interruptions = interruptionsIn(timeline);
  return {
    ok: true,
    ...answer(seen, attempts, await queuePositions(deps, active, now), now),
    goodput: booked.goodput,
    ...outlookAnswer(outlook(seen, { ledger: booked, interruptions, fleet, now })),
    interruptions,
    ...(request.configuration && (await configurationOf(deps, own.runId))),
    ...(request.timeline && boundedTimeline(timeline)),
  };
}

/** Number of the team's newest runs from which the end of a run is predicted. */
const FLEET = 40;

/** How often the team's other runs on the same instance types were interrupted; empty for a run without an expected end. */
async function fleetOf({ store }: ReadDeps, own: RunRecord, now: EpochMs): Promise<FleetRun[]> {
  if (isOver(own) || own.policy.totalSteps === undefined || !own.attempt) return [];
  const others = (await store.ofTeam(own.team, FLEET)).filter((other) => other.runId !== own.runId);
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

const outlookAnswer = ({ progressPercent, etaAt, etaInterval80 }: Outlook) => ({
  progressPercent: progressPercent === null ? null : Math.round(progressPercent * 10) / 10,
  etaAt: isoOf(etaAt ?? undefined),
  etaInterval80: etaInterval80 && ([isoOf(etaInterval80[0]) ?? '', isoOf(etaInterval80[1]) ?? ''] as [string, string]),
});

/**
 * The newest attempt; for a live job, updated with its newest heartbeat, because the control plane itself reads it only every few minutes.
 */
async function liveAttempt(deps: ReadDeps, record: RunRecord, now: EpochMs): Promise<Attempt | undefined> {
  const { attempt } = record;
  if (attempt?.phase !== 'created' || isOver(record)) return attempt;
  const progress = nextProgress(attempt, await newestHeartbeat(deps, record, attempt), now);
  const { first, last } = stepsOf(progress);
  return {
    ...attempt,
    progress,
    firstStep: attempt.firstStep ?? first,
    lastStep: progress?.step ?? last ?? attempt.lastStep,
  };
}

/** Undefined when it cannot be read: status then reports the last recorded values. */
async function newestHeartbeat(deps: ReadDeps, record: RunRecord, attempt: Attempt) {
  try {
    const { heartbeat } = await readHeartbeat(
      deps.s3,
      attempt.files?.heartbeat ?? (await heartbeatOf(deps, record, attempt)),
    );
    return heartbeat;
  } catch {
    return undefined;
  }
}

/** Where a job writes that reconcile has not observed yet, according to the current descriptor. */
async function heartbeatOf(deps: ReadDeps, { team, runId }: RunRecord, { number }: Attempt): Promise<string> {
  const descriptor = await readDescriptor(deps, team);
  return runPrefixes({ descriptor, runId, attempt: number }).heartbeat;
}

/** The configuration with which the run was launched, without the secret of its restarts. */
async function configurationOf(deps: ReadDeps, runId: string): Promise<Pick<StatusAnswer, 'configuration'>> {
  const intent = await deps.store.findIntent(runId);
  if (!intent) return {};
  const { written: _, ...spec } = intent.spec;
  return {
    configuration: {
      spec: { ...spec },
      codeSha256: intent.code?.sha256 ?? null,
      driverHash: intent.driver.hash,
      trainingImageUri: intent.trainingImageUri,
    },
  };
}

/** Number of newest runs that a search covers. */
const MAX_SEARCHED = 1000;

/** The newest runs of the team. Goodput is only part of `status`, because it needs the whole timeline. */
export async function listRuns(
  deps: ReadDeps,
  team: string,
  request: ListRequest,
): Promise<{ ok: true; runs: StatusAnswer[] }> {
  const isSearch = request.states !== undefined || request.tags !== undefined || request.search !== undefined;
  const [newest, active] = await Promise.all([
    deps.store.ofTeam(team, isSearch ? MAX_SEARCHED : request.limit),
    deps.store.active(),
  ]);
  const runs = newest.filter((run) => isWanted(run, request)).slice(0, request.limit);
  const now = deps.now().getTime();
  const positions = await queuePositions(deps, active, now);
  return { ok: true, runs: runs.map((run) => answer(run, run.attempt ? [run.attempt] : [], positions, now)) };
}

/** Positions in the queue over all teams, 1 = next. */
async function queuePositions(
  deps: ReadDeps,
  active: readonly RunRecord[],
  now: EpochMs,
): Promise<Map<string, number>> {
  const waiting = active.filter(isQueued).map((r) => queuedRun(r, {}));
  if (waiting.length === 0) return new Map();
  const running = active.filter(holdsCapacity).map((r) => runningRun(r, {}));
  const { usage, shares } = (await deps.store.findQueue()) ?? { usage: NO_USAGE, shares: {} };
  const order = queueOrder(waiting, running, { shares, usage: advanceUsage(usage, usage.held, now) }, now);
  return new Map(order.map((run, i) => [run.runId, i + 1]));
}

function answer(
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
  return {
    trainingJobName: attempt.jobName,
    status: attempt.status,
    secondaryStatus: attempt.secondaryStatus,
    firstStep: attempt.firstStep,
    lastStep: attempt.lastStep,
    reason: attempt.reason,
    startedAt: isoOf(attempt.trainingStartedAt),
    endedAt: isoOf(attempt.endedAt),
    ...(instanceCount > 0 && { instanceCount }),
    ...gpusOf(record, attempt, now),
  };
}

/** GPU-hours of the attempt, and the utilisation of the GPUs. */
function gpusOf(
  record: RunRecord,
  attempt: Attempt,
  now: EpochMs,
): Pick<AttemptAnswer, 'gpuHours' | 'gpuUtilizationPercent'> {
  const hours = gpuHours(record, attempt, attempt.endedAt ?? now);
  const { gpuUtilizationPercent } = attempt.progress?.vitals ?? {};
  return {
    ...(hours !== undefined && { gpuHours: Math.round(hours * 1000) / 1000 }),
    ...(gpuUtilizationPercent !== undefined && { gpuUtilizationPercent }),
  };
}

const isoOf = (at: EpochMs | undefined): string | null => (at === undefined ? null : new Date(at).toISOString());
