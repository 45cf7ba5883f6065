import { fitsMemory } from '../../../core/admission';
import { fillPlaceholders, isWithin, mayUsePlace, withSlash } from '../../../core/config/formats/places';
import { keptPool } from '../../../core/lifecycle/accounting/spend';
import { runWithCapacityOption } from '../../../core/lifecycle/capacity-options';
import { isDueForListing, isSteady } from '../../../core/lifecycle/health/observation-schedule';
import { type CheckpointObservation, NOTHING_OBSERVED, type Observed } from '../../../core/lifecycle/observed';
import { isInDoubt } from '../../../core/lifecycle/phases/launch';
import { isPoolDue } from '../../../core/lifecycle/phases/settle-pool';
import {
  type Attempt,
  type EpochMs,
  isOver,
  type JobFiles,
  liveAttempt,
  type PoolAttempt,
  type RunRecord,
} from '../../../core/lifecycle/record';
import { neededToStart, type QuotaNeed, runQuotaNeeds } from '../../../core/quota';
import { type HeartbeatReading, readHeartbeat } from '../../shared/heartbeat';
import type { RunIntent } from '../../shared/items';
import { orUnreadable, UnreadableItem } from '../../shared/stored';
import type { ReconcileDeps } from '../deps';
import { listCheckpoints } from './checkpoints';
import { describeJob, isLiveJob } from './describe';
import {
  checkpointPrefix,
  isLocated,
  jobFilesOf,
  type LocatedRun,
  ownFolders,
  type Subject,
  type WholeRun,
} from './subject';

/** Results of an earlier round of the same invocation. */
export type EffectResults = Pick<Observed, 'create' | 'published' | 'stopAnswer'>;

/**
 * Observes everything that a decision on this run may depend on, and nothing else.
 * @returns undefined when the intent of the run is needed and the table does not contain it
 */
export async function observe(
  deps: ReconcileDeps,
  subject: Subject,
  results: EffectResults,
): Promise<Observed | undefined> {
  const { record } = subject;
  const nothing = { ...NOTHING_OBSERVED, ...results };
  if (isOver(record))
    return { ...nothing, ...(isPoolDue(record, deps.now().getTime()) && (await observePools(deps, record))) };
  const attempt = liveAttempt(record);
  const job =
    attempt?.over ??
    (attempt && !isAccepted(results) ? await describeJob(deps.sagemaker, record, attempt) : nothing.job);
  const isLive = isLiveJob(job);
  const launches = mayLaunch(record, attempt);
  const choosesOne = choosesOption(
    record,
    launches,
    attempt?.phase === 'intent' || (job.kind === 'present' && !isLive),
  );
  const files = attempt?.files;
  if (files && (isLive || job.kind === 'unreadable'))
    return { ...nothing, job, ...(await observeJob(deps, record, job, files)) };
  if (!attempt && !launches && !choosesOne) return nothing;
  const whole = await orUnreadable(subject.whole());
  // A stop needs nothing but the job's name.
  if (!whole || whole instanceof UnreadableItem)
    return attempt && { ...nothing, job, checkpoints: { kind: 'unreadable', error: 'the intent of the run' } };
  const [seen, startFrom, options, pool] = await Promise.all([
    observeFiles(deps, whole, job),
    (launches || startsAgain(record, attempt)) && isLocated(whole) ? findStart(deps, whole) : undefined,
    choosesOne ? optionsThatCannotStart(deps, whole) : undefined,
    launches ? observePools(deps, record) : {},
  ]);
  return { ...nothing, job, ...seen, startFrom, ...options, ...pool };
}

/**
 * A job shows how long its warm pool was kept: read for a finished run once its pools should have ended, and for any other run before its
 * next attempt.
 */
async function observePools(
  { sagemaker }: ReconcileDeps,
  record: RunRecord,
): Promise<Pick<Observed, 'lastJob' | 'earlierJobs'>> {
  const { attempt, earlierPools = [] } = record;
  if (!attempt) return {};
  const pool = keptPool(record);
  // An attempt after the one that left the pool may have ended without a job.
  const describe = (of: PoolAttempt) => describeJob(sagemaker, record, { ...attempt, ...of, phase: 'ended' });
  const [lastJob, earlier] = await Promise.all([
    pool && !pool.isFinal ? describe(pool.attempt) : undefined,
    Promise.all(earlierPools.map(async ({ attempt: of }) => [of.number, await describe(of)] as const)),
  ]);
  return {
    ...(lastJob && { lastJob }),
    ...(earlier.length > 0 && { earlierJobs: Object.fromEntries(earlier) }),
  };
}

/** Describe might not return a new job yet; the answer of the create call is better evidence. */
const isAccepted = (results: EffectResults): boolean => results.create?.kind === 'accepted';

const mayLaunch = (record: RunRecord, attempt: Attempt | undefined): boolean =>
  attempt === undefined && record.admitted && record.desired === 'run';

/** Whether the first attempt is created again, no call of which made a job: it starts from where `startFrom` is now. */
const startsAgain = ({ admitted, committed }: RunRecord, attempt: Attempt | undefined): boolean =>
  admitted && committed === null && attempt?.number === 1 && attempt.phase === 'intent' && !isInDoubt(attempt);

/** Where a job writes; a string is the reason why that is not known. */
type Place = JobFiles | string;

type InS3 = HeartbeatReading & Pick<Observed, 'checkpoints' | 'files'>;

/** Reads S3 for a job that is known to belong to the run, for one that may have run without being observed, and before the next attempt. */
async function observeFiles(deps: ReconcileDeps, whole: WholeRun, job: Observed['job']): Promise<InS3> {
  const { record } = whole;
  const attempt = liveAttempt(record);
  const place = isLocated(whole) ? jobFilesOf(whole) : `the descriptor: ${whole.descriptorError}`;
  const files = typeof place === 'string' ? {} : { files: place };
  // A job without an answer of its create call may train although Describe fails: only its driver shows that.
  if (attempt?.phase === 'created' || (attempt && isInDoubt(attempt) && job.kind === 'unreadable')) {
    return { ...files, ...(await observeJob(deps, record, job, attempt.files ?? place)) };
  }
  if (job.kind !== 'absent' && !mayLaunch(record, attempt)) return { checkpoints: NOTHING_OBSERVED.checkpoints };
  const [reading, checkpoints] = await Promise.all([
    attempt && isInDoubt(attempt) && typeof place !== 'string' ? readHeartbeat(deps.s3, place.heartbeat) : {},
    ownCheckpoints(deps, record, place, false),
  ]);
  const isEmpty = checkpoints.kind === 'unreadable' && typeof place !== 'string' && hasNoneYet(whole);
  return { ...files, ...reading, checkpoints: isEmpty ? { kind: 'listed', committed: [], torn: [] } : checkpoints };
}

async function observeJob(
  deps: ReconcileDeps,
  record: RunRecord,
  job: Observed['job'],
  place: Place,
): Promise<HeartbeatReading & Pick<Observed, 'checkpoints'>> {
  const isLive = isLiveJob(job);
  const mayWait = isLive && !isDueForListing(record, job, deps.tickAt ?? deps.now().getTime());
  const list = () => ownCheckpoints(deps, record, place, isLive);
  const [reading, listed] = await Promise.all([
    typeof place === 'string' ? { heartbeatError: place } : readHeartbeat(deps.s3, place.heartbeat),
    mayWait ? NOTHING_OBSERVED.checkpoints : list(),
  ]);
  // Without a heartbeat, the time of the last write is the only sign of life.
  const checkpoints = mayWait && !('heartbeat' in reading) ? await list() : listed;
  return { ...reading, checkpoints };
}

/**
 * While a job is live only its newest commit matters; the next attempt may need an older one. If nothing at all is listed where something was
 * committed, the answer is doubted for a day: a run must not start over or fail for an answer that is wrong.
 */
async function ownCheckpoints(
  deps: ReconcileDeps,
  record: RunRecord,
  place: Place,
  isLive: boolean,
): Promise<CheckpointObservation> {
  if (typeof place === 'string') return { kind: 'unreadable', error: place };
  const { marker, prefix } = place.checkpoints ?? {};
  // A record of an earlier version may name the prefix of another team.
  if (prefix === undefined || !isWithin(prefix, ownFolders(place).team))
    return { kind: 'listed', committed: [], torn: [] };
  const { badCheckpoints: bad, committed } = record;
  const live = { enough: 1, ...(isSteady(record) && { known: committed }) };
  const listed = await listCheckpoints(deps, prefix, { marker, bad, ...(isLive && live) });
  if (marker !== undefined || !committed || !isEmpty(listed) || isOldEnd(record, deps.now().getTime())) return listed;
  return { kind: 'unreadable', error: `step ${committed.step} was committed, and nothing is listed below ${prefix}` };
}

/** An answer without any folder, although the call succeeded. */
const isEmpty = (listed: CheckpointObservation): boolean =>
  listed.kind === 'listed' && listed.committed.length + listed.torn.length === 0 && !listed.newestWriteAt;

/** For how long an empty list is not believed after the end of an attempt that had committed something. */
const DOUBT_MS = 86_400_000;

function isOldEnd({ attempt }: RunRecord, now: EpochMs): boolean {
  const endedAt = attempt?.over?.endedAt ?? attempt?.endedAt ?? attempt?.absentSince ?? now;
  return now - endedAt > DOUBT_MS;
}

/** Before the first attempt of a run, nothing has been written to its own prefix, so a failed listing cannot cause any work to be lost. */
const hasNoneYet = ({ record, intent }: WholeRun): boolean =>
  record.attempt === undefined && record.committed === null && intent.spec.checkpoints.s3.includes('{runId}');

/** Resolves `checkpoints.startFrom`: another run of the team, one checkpoint, or a prefix with several. */
async function findStart(deps: ReconcileDeps, whole: LocatedRun): Promise<Observed['startFrom']> {
  const { startFrom } = whole.intent.spec.checkpoints;
  if (startFrom === undefined) return undefined;
  const prefix = startFrom.startsWith('s3://')
    ? ownPrefix(whole, startFrom)
    : await prefixOfRun(deps, whole, startFrom);
  if (prefix instanceof UnreadableItem) return { unreadable: prefix.message };
  if (!prefix)
    return { missing: `${startFrom} is no run or prefix of team ${whole.record.team} with checkpoints in S3` };
  const folder = /^(.*\/)(step-\d+\/)$/.exec(prefix);
  const listed = await listCheckpoints(deps, folder?.[1] ?? prefix, { only: folder?.[2] });
  if (listed.kind === 'unreadable') return { unreadable: `${startFrom} cannot be listed: ${listed.error}` };
  if (listed.kind !== 'listed') return { unreadable: `${startFrom} was not listed` };
  const [found] = listed.committed;
  const { totalSteps } = whole.record.policy;
  if (found && whole.intent.spec.code.builtin && totalSteps !== undefined && found.step >= totalSteps) {
    const must = `must be a checkpoint before step ${totalSteps}, the last one of this run, got step ${found.step}`;
    return { missing: `${must}; raise training.steps, which counts the steps of both runs` };
  }
  if (!found) return { missing: `${startFrom} has no complete checkpoint` };
  // The run continues its step count, but has committed nothing itself.
  return { ...found, attempt: null };
}

function ownPrefix({ record, descriptor }: LocatedRun, uri: string): string | undefined {
  const prefix = withSlash(fillPlaceholders(uri, { descriptor, runId: record.runId }));
  return mayUsePlace('checkpoints', prefix, descriptor) ? prefix : undefined;
}

async function prefixOfRun(
  deps: ReconcileDeps,
  whole: LocatedRun,
  runId: string,
): Promise<string | UnreadableItem | undefined> {
  const other = await deps.store.findOrUnreadable(runId);
  if (other instanceof UnreadableItem) return other;
  const intent = await deps.store.findIntent(runId);
  if (!other || !intent || other.team !== whole.record.team) return undefined;
  return checkpointPrefix({ record: other, intent, descriptor: whole.descriptor });
}

/**
 * Whether this pass may choose a capacity option: when an attempt is prepared and, if there are several capacity options, while the run
 * waits in the queue, while it is not known whether a job was created, and when a job is over.
 * @param isOpen the attempt has no live job
 */
const choosesOption = ({ admitted, policy, desired }: RunRecord, launches: boolean, isOpen: boolean): boolean =>
  launches || (desired === 'run' && policy.capacityOptions.length > 1 && (!admitted || isOpen));

/**
 * Capacity options on which no attempt can start now. Above the applied quota the service refuses a job however long it waits; a limit that
 * could not be read refuses nothing. A single capacity option needs no choice, so that no quota is read for it.
 */
async function optionsThatCannotStart(
  deps: Pick<ReconcileDeps, 'limits' | 'region'>,
  whole: Pick<WholeRun, 'record' | 'intent'>,
): Promise<Pick<Observed, 'optionsThatDoNotFit' | 'optionsAboveQuota'>> {
  const { capacityOptions } = whole.record.policy;
  const needsOn = (id: string) => neededToStart(runQuotaNeeds(runWithCapacityOption(whole.intent.spec, id)));
  const needs = capacityOptions.length > 1 ? capacityOptions.map(({ id }) => ({ id, needs: needsOn(id) })) : [];
  const limits = await deps.limits.read(needs.flatMap((option) => option.needs));
  const isAbove = ({ name, needed }: QuotaNeed) => {
    const limit = limits.get(name);
    return limit !== undefined && 'value' in limit && needed > limit.value;
  };
  const above = needs.filter((option) => option.needs.some(isAbove));
  return { optionsThatDoNotFit: tooSmall(deps.region, whole), optionsAboveQuota: above.map(({ id }) => id) };
}

/** What follows from an intent and its capacity options, neither of which changes. */
const tooSmallOf = new WeakMap<RunIntent, string[]>();

/** Capacity options on which the planner knows that the run does not fit into memory. */
function tooSmall(region: string, { record, intent }: Pick<WholeRun, 'record' | 'intent'>): string[] {
  const known = tooSmallOf.get(intent);
  if (known) return known;
  const fits = (capacityOptionId: string) => fitsMemory(runWithCapacityOption(intent.spec, capacityOptionId), region);
  const found = record.policy.capacityOptions.filter((option) => !fits(option.id)).map((option) => option.id);
  tooSmallOf.set(intent, found);
  return found;
}
