import type { ListRequest, Refusal, StatusAnswer, TimelineAnswer } from '../../../core/contracts/control';
import { runPrefixes } from '../../../core/job/plan';
import type { TimelineEvent } from '../../../core/lifecycle/action';
import { nextProgress } from '../../../core/lifecycle/health/hang';
import { stepEvents, stepsOf } from '../../../core/lifecycle/health/step-times';
import { type Attempt, type EpochMs, isOver, type RunRecord } from '../../../core/lifecycle/record';
import { readDescriptor } from '../../shared/descriptors';
import { readHeartbeat } from '../../shared/heartbeat';
import { isQueued } from '../../shared/queue-runs';
import { FLEET, mayHaveEnd, queuePositions, runAnswer, runFigures } from '../../shared/run-answer';
import type { ReadDeps } from '../deps';
import { findOwnRun } from '../own-run';

/** The status of one run: what the control plane recorded, and what the driver has reported since. */
export async function statusOf(
  deps: ReadDeps,
  team: string,
  request: { runId: string; timeline: boolean; configuration: boolean },
): Promise<({ ok: true } & StatusAnswer) | Refusal> {
  const own = await findOwnRun(deps, team, request.runId);
  if ('ok' in own) return own;
  const now = deps.now().getTime();
  const [written, timeline, active, attempt, newest] = await Promise.all([
    deps.store.attempts(own.runId),
    deps.store.timeline(own.runId),
    isQueued(own) ? deps.store.active() : [],
    liveAttempt(deps, own, now),
    mayHaveEnd(own) ? deps.store.ofTeam(own.team, FLEET) : [],
  ]);
  const attempts = written.map((a) => (attempt && a.number === attempt.number ? attempt : a));
  const since = own.attempt && attempt ? stepEvents(own.attempt, attempt, now) : [];
  const seen = { ...own, attempt };
  return {
    ok: true,
    ...runAnswer(seen, attempts, await queuePositions(deps, active, now), now),
    ...runFigures(seen, [...timeline, ...since], newest, now),
    ...(request.configuration && (await configurationOf(deps, own))),
    ...(request.timeline && boundedTimeline(timeline)),
  };
}

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
async function newestHeartbeat(deps: ReadDeps, { team, runId }: RunRecord, { files, number: attempt }: Attempt) {
  try {
    // Reconcile may not have observed yet where the job writes.
    const uri =
      files?.heartbeat ?? runPrefixes({ descriptor: await readDescriptor(deps, team), runId, attempt }).heartbeat;
    const { heartbeat } = await readHeartbeat(deps.s3, uri);
    return heartbeat;
  } catch {
    return undefined;
  }
}

/** The configuration with which the run was launched, without the secret of its restarts. */
async function configurationOf(
  deps: ReadDeps,
  { runId, configHash }: RunRecord,
): Promise<Pick<StatusAnswer, 'configuration'>> {
  const intent = await deps.store.findIntent(runId);
  if (!intent) return {};
  const { written: _, ...spec } = intent.spec;
  return {
    configuration: {
      spec: { ...spec },
      configHash,
      codeSha256: intent.code?.sha256 ?? null,
      driverHash: intent.driver.hash,
      trainingImageUri: intent.trainingImageUri,
    },
  };
}

/** Number of runs of a team that searches read, besides the live ones. */
export const MAX_SEARCHED = 1000;

/** The newest runs of a team, and the live ones that are older, newest first. */
export function withLive(newest: readonly RunRecord[], active: readonly RunRecord[], team: string): RunRecord[] {
  const runs = [...newest, ...active.filter((run) => run.team === team)];
  const byId = new Map(runs.map((run) => [run.runId, run]));
  return [...byId.values()].sort((a, b) => b.createdAt - a.createdAt);
}

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
  const runs = withLive(newest, active, team)
    .filter((run) => isWanted(run, request))
    .slice(0, request.limit);
  const now = deps.now().getTime();
  const positions = await queuePositions(deps, active, now);
  return { ok: true, runs: runs.map((run) => runAnswer(run, run.attempt ? [run.attempt] : [], positions, now)) };
}

/** Whether a run matches the filter of `list`: all given conditions must hold. */
export function isWanted(run: RunRecord, { states, tags, search }: Pick<ListRequest, 'states' | 'tags' | 'search'>) {
  const own = Object.entries(run.tags ?? {});
  const hasTag = (tag: string) => own.some(([key, value]) => tag === key || tag === `${key}=${value}`);
  const texts = [run.runId, run.name, run.note ?? '', run.reason, ...own.map(([key, value]) => `${key}=${value}`)];
  const has = (text: string) => texts.some((one) => one.toLowerCase().includes(text.toLowerCase()));
  return (
    (!states || states.includes(run.state)) && (!tags || tags.every(hasTag)) && (search === undefined || has(search))
  );
}

/** A Lambda answer is limited to 6 MB; the rest of a status stays far below the remaining 2 MB. */
const MAX_BYTES = 4_000_000;

/** The newest events that fit into an answer, oldest first, and the number of older ones that do not. */
export function boundedTimeline(
  lines: readonly TimelineEvent[],
  mostBytes = MAX_BYTES,
): { timeline: TimelineAnswer[]; timelineOmitted?: number } {
  const timeline: TimelineAnswer[] = [];
  let bytes = 0;
  for (const line of [...lines].reverse()) {
    const answer = timelineAnswer(line);
    bytes += Buffer.byteLength(JSON.stringify(answer)) + 1;
    if (bytes > mostBytes) break;
    timeline.push(answer);
  }
  const omitted = lines.length - timeline.length;
  return { timeline: timeline.reverse(), ...(omitted > 0 && { timelineOmitted: omitted }) };
}

const timelineAnswer = ({ at, what, text, evidence }: TimelineEvent): TimelineAnswer => ({
  at: new Date(at).toISOString(),
  what,
  text,
  evidence,
});
