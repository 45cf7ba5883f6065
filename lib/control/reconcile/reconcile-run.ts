import { PutObjectTaggingCommand, type S3Client } from '@aws-sdk/client-s3';
import { bucketAndKey, isWithin } from '../../core/config/formats/places';
import { CHECKPOINT_MARKER, LEFTOVER_TAG } from '../../core/contracts/storage';
import type { Action, Effect } from '../../core/lifecycle/action';
import { type Backoff, backoffSeconds } from '../../core/lifecycle/budgets';
import { decide } from '../../core/lifecycle/decide';
import { admittedEvidence, newEvidence } from '../../core/lifecycle/health/known-gpus';
import { isWorthWriting } from '../../core/lifecycle/health/observation-schedule';
import type { CreateOutcome, Observed } from '../../core/lifecycle/observed';
import { type Attempt, type EpochMs, isOver, type JobFiles, type RunRecord } from '../../core/lifecycle/record';
import { eachInTurn } from '../../shared/aws/pace';
import { whileTimeRemains } from '../shared/deadline';
import { describeError } from '../shared/errors';
import { sendAbout } from '../shared/queue';
import { isQueued } from '../shared/queue-runs';
import type { ReconcileDeps } from './deps';
import { applyEffects } from './effects';
import { announce } from './notify/event-bus';
import { AT_ONCE, byStep, markersIn, matchesMarker } from './observe/checkpoints';
import { listFolder } from './observe/folders';
import { type EffectResults, observe } from './observe/observe';
import { checkpointPrefix, isLocated, jobFilesOf, ownFolders, readSubject, type Subject } from './observe/subject';

/**
 * Number of pauses within one invocation after a create call with an unknown outcome: about 52 s together, longer than the service's reads
 * lag behind.
 */
const MAX_PAUSES = 3;
const PAUSE: Backoff = { firstSeconds: 8, mostSeconds: 28 };
/** Whether the run should look again within seconds, because the outcome leaves it without a job and without a decision. */
const LEAVES_OPEN: Readonly<Record<CreateOutcome['kind'], boolean>> = {
  accepted: false,
  doubtful: true,
  exists: true,
  throttled: true,
  'not-attempted': true,
  limit: false,
  refused: false,
};

/** One round may take this long, because it waits for the answer of its create call. */
const ROUND_MS = 40_000;

/**
 * Enough for the end of an attempt, the choice of a checkpoint, create, adoption, first observation and notices; anything else waits for
 * the next tick.
 */
const MAX_ROUNDS = 16;

/**
 * Advances one run as far as possible now: observe, decide, save, act, and repeat until there is nothing left to do. Safe to call at any
 * time, any number of times and concurrently: if another invocation has written the run in the meantime, this decision is discarded and the
 * run is read again.
 * @returns milliseconds until its first create call is due, if that is soon; otherwise undefined
 */
export async function reconcileRun(deps: ReconcileDeps, runId: string): Promise<number | undefined> {
  let carried: EffectResults = { published: [] };
  const doubt = { open: false, pauses: 0 };
  for (let round = 0; round < MAX_ROUNDS; round++) {
    if (round > 0 && remainingMs(deps) < ROUND_MS) break;
    const subject = await readSubject(deps, runId);
    const observed = subject && (await observe(deps, subject, carried));
    if (!subject || !observed) {
      deps.log('warn', 'no such run', { runId });
      return undefined;
    }
    const actions = wanted(subject.record, observed, deps.now().getTime());
    const done = await carryOut(deps, subject, actions);
    if (done !== 'lost-race' && isSettled(actions, observed, deps.now().getTime())) return undefined;
    // The other write has not taken out of the outbox what is published.
    carried = typeof done === 'string' ? { published: done === 'lost-race' ? carried.published : [] } : done;
    // A write whose answer was lost looks like a lost race, but its effect was not carried out.
    if (done === 'lost-race') doubt.open = true;
    if (carried.create) doubt.open = LEAVES_OPEN[carried.create.kind];
    if (done === 'nothing-more' && !(await pauseInDoubt(deps, subject.record, doubt)))
      return untilCreate(subject.record, deps.now().getTime());
  }
  deps.log('info', 'left for the next tick', { runId });
  return undefined;
}

/** Later than this the next tick comes first. */
const SOON_MS = 300_000;

/** Only for the first create call, which the queue has given a place: a run that was refused waits for the ticks. */
function untilCreate({ admitted, attempt, desired, notBefore = 0 }: RunRecord, now: EpochMs): number | undefined {
  const waitMs = notBefore - now;
  const isPaced = admitted && attempt === undefined && desired === 'run';
  return isPaced && waitMs > 0 && waitMs <= SOON_MS ? waitMs : undefined;
}

/** The decided actions, without a write that would only record newer steps. */
export function wanted(record: RunRecord, observed: Observed, now: EpochMs): Action[] {
  const actions = decide(record, observed, now);
  const [save] = actions;
  const isAlone = actions.length === 1 && save?.do === 'save' && save.events.length === 0;
  return isAlone && !isWorthWriting(record, save.record) ? [] : actions;
}

/**
 * Whether the actions were only a write after which the same observation requires nothing more, so that another round would repeat this
 * one.
 */
export function isSettled(actions: readonly Action[], observed: Observed, now: EpochMs): boolean {
  const [save, ...effects] = actions;
  const isFresh = observed.create === undefined && observed.published.length === 0 && !observed.stopAnswer;
  return isFresh && save?.do === 'save' && effects.length === 0 && wanted(save.record, observed, now).length === 0;
}

/**
 * After a create call that was throttled or whose answer was lost, pauses for seconds instead of waiting for the next tick. Only this run
 * waits, because it has its own message group.
 * @returns false when there is nothing to wait for
 */
async function pauseInDoubt(
  deps: ReconcileDeps,
  record: RunRecord,
  doubt: { open: boolean; pauses: number },
): Promise<boolean> {
  if (!doubt.open || record.attempt?.phase !== 'intent' || doubt.pauses === MAX_PAUSES) return false;
  const pauseMs = backoffSeconds(PAUSE, doubt.pauses + 1, record.runId) * 1000;
  if (remainingMs(deps) < pauseMs + ROUND_MS) return false;
  doubt.pauses += 1;
  doubt.open = false;
  await deps.sleep(pauseMs);
  return true;
}

const remainingMs = (deps: ReconcileDeps): number => deps.remainingMs?.() ?? Number.POSITIVE_INFINITY;

async function carryOut(
  deps: ReconcileDeps,
  subject: Subject,
  actions: readonly Action[],
): Promise<EffectResults | 'nothing-more' | 'lost-race'> {
  const save = actions.find((a) => a.do === 'save');
  if (save) {
    // Before the write: if the invocation dies between the two, this is repeated, whereas a run that is over is not processed again.
    if (isOver(save.record) && !isOver(subject.record)) await markLeftovers(deps, subject);
    if (!(await rememberGpus(deps, subject.record, save.record))) return 'lost-race';
    if (!(await deps.store.save(save.record, subject.record, save.events))) return 'lost-race';
    for (const line of save.events)
      deps.log('info', line.text, { runId: save.record.runId, what: line.what, ...line.evidence });
    await announce(deps, subject.record, save.record);
    if (changesQueue(subject.record, save.record)) await sendAbout(deps, 'admit', save.record);
  }
  const effects = actions.filter((a): a is Effect => a.do !== 'save');
  const carried = await applyEffects(deps, { ...subject, record: save?.record ?? subject.record }, effects);
  const isUndescribed = subject.record.attempt?.undescribedSince !== undefined;
  const hasLearnt =
    carried.create !== undefined || carried.published.length > 0 || (isUndescribed && carried.stopAnswer !== undefined);
  return save || hasLearnt ? carried : 'nothing-more';
}

/**
 * Stores what the job has newly reported about GPUs. Later jobs only lose a hint if it fails.
 * @returns false if another write was in progress: then the run must not be saved, so that the next round finds the same reports again
 */
async function rememberGpus(
  deps: ReconcileDeps,
  before: RunRecord,
  { attempt, team, runId }: RunRecord,
): Promise<boolean> {
  const now = deps.now().getTime();
  const found = newEvidence(before.attempt, attempt, { team, runId, now });
  if (found.length === 0) return true;
  try {
    const kept = admittedEvidence(found, await deps.store.gpuEvidence(), now);
    if (kept.length > 0 && !(await deps.store.saveGpuEvidence(kept))) {
      const error = 'another write was in progress; the next round repeats it';
      deps.log('warn', 'GPUs are not remembered', { runId, error });
      return false;
    }
    const gpus = kept.map(({ uuid }) => uuid);
    deps.log('info', 'GPUs are remembered', { runId, gpus, refused: found.length - kept.length });
  } catch (error) {
    deps.log('warn', 'GPUs are not remembered', { runId, error: describeError(error) });
  }
  return true;
}

/**
 * Lets what the run left uncommitted expire, below its own prefix alone: in a prefix that runs share, another run may be saving. If it
 * fails, the only cost is storage; the run is not kept open for it.
 */
async function markLeftovers(deps: ReconcileDeps, subject: Subject): Promise<void> {
  const { record } = subject;
  const { runId } = record;
  try {
    const files = record.attempt && (await filesOf(subject, record.attempt));
    const visible = files?.checkpoints;
    if (!visible || !isWithin(visible.prefix, ownFolders(files).run)) return;
    if (await isShared(deps, subject, visible.prefix)) return;
    const { found, tagged } = await tagLeftovers(deps, visible.prefix, visible.marker);
    if (found > 0) deps.log('info', 'objects of uncommitted checkpoints will expire', { runId, found, tagged });
  } catch (error) {
    deps.log('warn', 'uncommitted checkpoints were not tagged', { runId, error: describeError(error) });
  }
}

/** Whether another run of the team that is not over keeps its checkpoints in the prefix, or may do so. */
async function isShared(deps: ReconcileDeps, subject: Subject, prefix: string): Promise<boolean> {
  const { runId, team } = subject.record;
  const others = (await deps.store.active()).filter((run) => run.runId !== runId && run.team === team && !isOver(run));
  for (const other of others) {
    const theirs = other.attempt?.files?.checkpoints?.prefix ?? (await futurePrefix(deps, subject, other));
    if (theirs !== undefined && (isWithin(theirs, prefix) || isWithin(prefix, theirs))) return true;
  }
  return false;
}

async function futurePrefix(deps: ReconcileDeps, subject: Subject, record: RunRecord): Promise<string | undefined> {
  const [whole, intent] = await Promise.all([subject.whole(), deps.store.findIntent(record.runId)]);
  if (!whole || !isLocated(whole)) throw new Error(`the descriptor: ${whole?.descriptorError ?? 'it was not read'}`);
  return intent && checkpointPrefix({ record, intent, descriptor: whole.descriptor });
}

async function filesOf(subject: Subject, { files }: Attempt): Promise<JobFiles | undefined> {
  const whole = files ? undefined : await subject.whole();
  return whole && isLocated(whole) ? jobFilesOf(whole) : files;
}

/** A run that ended or returned its capacity may release capacity for another run, and one that joins the queue may start at once. */
export const changesQueue = (before: RunRecord, after: RunRecord): boolean =>
  (isOver(after) && !isOver(before)) || (before.admitted && !after.admitted) || (isQueued(after) && !isQueued(before));

const MAX = 4000;
/** Number of newest folders that are checked; older unfinished ones only cost storage. */
const MAX_FOLDERS = 200;
/** Time for the last call, with its retries, and then for the write of the run that is over. */
const RESERVE_MS = 60_000;

/**
 * Objects of checkpoints that were never committed, by their names relative to the prefix. Covers only folders `step-<n>/` that the marker
 * can match, because other objects are not ours. A damaged checkpoint, which has its marker, is kept for inspection.
 */
async function leftovers(s3: S3Client, prefixUri: string, marker: string): Promise<string[]> {
  const [first = '', ...rest] = marker.split('/');
  if (rest.length === 0) return [];
  const { folders } = await listFolder(s3, prefixUri);
  const found: string[] = [];
  const own = byStep(folders).filter((folder) => matchesMarker(first, folder.slice(0, -1)));
  await eachInTurn(own.slice(0, MAX_FOLDERS), AT_ONCE, async (folder) => {
    if (found.length >= MAX || (await markersIn(s3, prefixUri, folder, rest)).length > 0) return;
    const { objects } = await listFolder(s3, `${prefixUri}${folder}`, { deep: true, most: MAX });
    for (const name of objects.keys()) found.push(`${folder}${name}`);
  });
  return found;
}

/**
 * Tags these objects, so that the bucket's lifecycle rule expires them after `storage.checkpointExpirationDays`. Only for a run that is
 * over, because a save may be in progress before. An object that a resumed run writes again has no tag. Tagging twice changes nothing.
 * Throws when the time of the invocation runs short.
 * @returns how many there are, and how many were tagged
 */
async function tagLeftovers(
  deps: Pick<ReconcileDeps, 's3' | 'remainingMs'>,
  prefixUri: string,
  marker = `*/${CHECKPOINT_MARKER}`,
): Promise<{ found: number; tagged: number }> {
  const s3 = whileTimeRemains(deps.s3, RESERVE_MS, deps.remainingMs);
  const found = await leftovers(s3, prefixUri, marker);
  const tagged = found.slice(0, MAX);
  const Tagging = { TagSet: [{ Key: LEFTOVER_TAG.key, Value: LEFTOVER_TAG.value }] };
  await eachInTurn(tagged, AT_ONCE, (name) =>
    s3.send(new PutObjectTaggingCommand({ ...bucketAndKey(`${prefixUri}${name}`), Tagging })),
  );
  return { found: found.length, tagged: tagged.length };
}
