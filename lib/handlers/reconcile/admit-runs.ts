import { isDeepStrictEqual } from 'node:util';
import { admitRun } from '../../lifecycle/intent';
import { sizesToAsk } from '../../lifecycle/ladder';
import { mayGrow } from '../../lifecycle/phases/grow';
import { isInDoubt } from '../../lifecycle/phases/launch';
import type { RunRecord } from '../../lifecycle/record';
import { type Admission, admit, type QueueInput } from '../../queue/admit';
import type { QueuedRun } from '../../queue/run';
import { advanceUsage, heldBy, NO_USAGE, type QueueUsage } from '../../queue/usage';
import { describeError } from '../shared/errors';
import { holdsCapacity, isQueued, queuedRun, runningRun, usesInstances } from '../shared/queue-runs';
import type { ReconcileDeps } from './deps';
import { announce } from './effects/apply-effects';
import { wake } from './queue/ask-to-leave';
import { isolateFailure } from './queue/isolate-failure';
import { makeRoom } from './queue/make-room';
import { poolsOf } from './queue/queue-pools';
import { readAgain } from './queue/read-again';
import { growNow, hasLeft, keepRoom, roomChanges, takeRoomBack } from './queue/resize';
import { needsOf, type RunNeeds } from './queue/run-needs';
import { holdOf, teamHolds } from './queue/team-holds';
import { type AwaitedRuns, awaitedRuns, tellBlocked } from './queue/waits-for';

/**
 * Lets waiting runs start, over all teams. Messages of this kind share one group of the FIFO queue, so that two passes never count the same
 * free instances; the service's own limit stands behind it in any case.
 * @param changed a run whose newest state the index of active runs may not show yet
 */
export async function admitRuns(deps: ReconcileDeps, changed?: string): Promise<void> {
  const active = await newest(deps, await deps.store.active(), changed);
  const waiting = active.filter(isQueued);
  const holding = active.filter(holdsCapacity);
  const now = deps.now().getTime();
  const needs = await needsOf(deps, [...waiting, ...holding]);
  const running = holding.map((run) => runningRun(run, needs.of(run, heldRung(run))));
  const using = holding.filter(usesInstances).map((run) => runningRun(run, needs.of(run)));
  const before = await rememberedUsage(deps);
  const usage = advanceUsage(before ?? NO_USAGE, heldBy(using), now);
  if (before) await rememberUsage(deps, before, usage);
  if (waiting.length === 0 && !holding.some((run) => mayGrow(run, now))) return;
  const pools = await poolsOf(deps, active, needs.all);
  const awaited = await awaitedRuns(deps, waiting);
  const holds = await teamHolds(deps, active);
  const queued = waiting.map((run) => ({ ...queuedOnItsSizes(run, needs), ...holdOf(run, holds) }));
  const completed = completedOf(awaited);
  const input: QueueInput = { waiting: queued, running, pools, shares: deps.shares, usage, completed, now };
  const admission = admit(input);
  const room = roomChanges(input, admission, holding, needs);
  if (!(await takeRoomBack(deps, room))) return;
  await startOrWait(deps, waiting, { ...admission, awaited, now });
  // What has just been let start holds its room from the next pass on.
  if (admission.admitted.length === 0) await makeRoom(deps, input, holding, needs);
  await keepRoom(deps, room);
  await growNow(deps, holding, room);
}

const completedOf = (awaited: AwaitedRuns): Set<string> =>
  new Set([...awaited].filter(([, run]) => run?.state === 'completed').map(([wanted]) => wanted));

/** Lets the admitted runs start, and tells the others what they wait for. */
async function startOrWait(
  deps: ReconcileDeps,
  waiting: readonly RunRecord[],
  { admitted, sizes, waits, awaited, now }: Admission & { awaited: AwaitedRuns; now: number },
): Promise<void> {
  const reasons = new Map(waits.map(({ runId, why }) => [runId, why]));
  const starting = new Set(admitted);
  for (const run of waiting) {
    const why = reasons.get(run.runId);
    await isolateFailure(deps, run, async () => {
      if (starting.has(run.runId)) await letStart(deps, run, now, sizes[run.runId]);
      if (why) await sayWhy(deps, await tellBlocked(deps, run, awaited, now), why);
    });
  }
}

/** The room of a run that was asked to leave for more is taken already. */
const heldRung = (run: RunRecord): string => (hasLeft(run) ? (run.roomFor?.rungId ?? run.rungId) : run.rungId);

/** An elastic run takes smaller sizes too, unless a job of its attempt may exist, which has a size. */
function queuedOnItsSizes(run: RunRecord, needs: RunNeeds): QueuedRun {
  const queued = queuedRun(run, needs.of(run));
  if (run.attempt && isInDoubt(run.attempt)) return queued;
  const smaller = needs.sizes(
    run,
    sizesToAsk(run)
      .slice(1)
      .map((rung) => rung.id),
  );
  return smaller.length > 0 ? { ...queued, smaller } : queued;
}

/** Undefined when it cannot be read: the queue goes on, and the teams are equal in this pass. */
async function rememberedUsage(deps: ReconcileDeps): Promise<QueueUsage | undefined> {
  try {
    return (await deps.store.findQueue())?.usage ?? NO_USAGE;
  } catch (error) {
    deps.log('error', 'what the teams have used could not be read', { error: describeError(error) });
    return undefined;
  }
}

/** What is held for long is counted by the next reader: only a change is written. */
async function rememberUsage(deps: ReconcileDeps, before: QueueUsage, usage: QueueUsage): Promise<void> {
  if (isDeepStrictEqual(before.held, usage.held)) return;
  try {
    await deps.store.saveQueue({ usage, shares: deps.shares });
  } catch (error) {
    deps.log('warn', 'what the teams have used was not written', { error: describeError(error) });
  }
}

/**
 * The index lags behind; who starts is decided on what is written. Runs that hold capacity are taken as the index shows them, but for
 * elastic ones, which hold more or less of it from one attempt to the next. A waiting run
 * that cannot be read does not start.
 */
async function newest(deps: ReconcileDeps, listed: readonly RunRecord[], changed?: string): Promise<RunRecord[]> {
  const isAsked = (run: RunRecord) => mayHaveChanged(run) || run.runId === changed;
  const asked = new Set(listed.filter(isAsked).map(({ runId }) => runId));
  if (changed !== undefined) asked.add(changed);
  const seen = await readAgain(deps, [...asked]);
  const known = listed.map((run) => {
    if (!asked.has(run.runId)) return run;
    return seen.has(run.runId) ? seen.get(run.runId) : { ...run, confirmed: false };
  });
  const isListed = listed.some((run) => run.runId === changed);
  const late = changed === undefined || isListed ? undefined : seen.get(changed);
  return [...known, late].filter((run) => run !== undefined);
}

/** What it holds, or waits for, follows from more than that it is active. */
export const mayHaveChanged = (run: RunRecord): boolean => isQueued(run) || run.policy.pendingSeconds !== undefined;

async function letStart(deps: ReconcileDeps, run: RunRecord, now: number, rungId?: string): Promise<void> {
  const { record, events } = admitRun(run, 'admitted by the queue', now, rungId);
  if (!(await deps.store.save(record, run.version, events))) return;
  await announce(deps, run, record);
  await wake(deps, record);
}

/** `list` says why a run waits; an unchanged reason is not written again. */
async function sayWhy(deps: ReconcileDeps, run: RunRecord, why: string): Promise<void> {
  if (run.reason === why) return;
  await deps.store.save({ ...run, reason: why, version: run.version + 1 }, run.version, []);
}
