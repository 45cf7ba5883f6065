import type { ListRequest, Refusal, StatusAnswer } from '../../../core/contracts/control';
import { runPrefixes } from '../../../core/job/plan';
import { type FleetRun, fleetRun, isAlike } from '../../../core/lifecycle/accounting/fleet-rate';
import { type Outlook, outlook } from '../../../core/lifecycle/accounting/outlook';
import type { TimelineEvent } from '../../../core/lifecycle/action';
import { nextProgress } from '../../../core/lifecycle/health/hang';
import { stepEvents, stepsOf } from '../../../core/lifecycle/health/step-times';
import { ledger } from '../../../core/lifecycle/ledger';
import { type Attempt, type EpochMs, isOver, type RunRecord } from '../../../core/lifecycle/record';
import { readDescriptor } from '../../shared/descriptors';
import { readHeartbeat } from '../../shared/heartbeat';
import { isQueued } from '../../shared/queue-runs';
import { isoOf, queuePositions, runAnswer } from '../../shared/run-answer';
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
    ...runAnswer(seen, attempts, await queuePositions(deps, active, now), now),
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
  return { ok: true, runs: runs.map((run) => runAnswer(run, run.attempt ? [run.attempt] : [], positions, now)) };
}
