import { fitsMemory } from '../../../admission';
import { fillPlaceholders, runPrefixes } from '../../../job/plan';
import { isDueForListing, isSteady } from '../../../lifecycle/health/look';
import { runOnRung } from '../../../lifecycle/ladder';
import { type CheckpointObservation, NOTHING_OBSERVED, type Observed } from '../../../lifecycle/observed';
import { type Attempt, type Checkpoint, isOver, liveAttempt, type RunRecord } from '../../../lifecycle/record';
import { type QuotaNeed, runQuotaNeeds } from '../../../quota';
import type { Descriptor } from '../../../spec/descriptor';
import { type HeartbeatReading, readHeartbeat } from '../../shared/heartbeat';
import type { RunIntent } from '../../shared/items';
import type { ReconcileDeps } from '../deps';
import { listCheckpoints } from './checkpoints';
import { describeJob } from './describe';

/** What was learnt in an earlier round of the same invocation. */
export type EffectResults = Pick<Observed, 'create' | 'published'>;

/** A run with what its observation needs beside the record. */
export interface ObservedRun {
  record: RunRecord;
  intent: RunIntent;
  /** Undefined when it could not be read: nothing of the run in S3 can be found then, and no job be made. */
  descriptor?: Descriptor;
  /** Why it could not be read. */
  descriptorError?: string;
}

type Located = ObservedRun & { descriptor: Descriptor };
const isLocated = (subject: ObservedRun): subject is Located => subject.descriptor !== undefined;

/** Looks at everything that a decision on this run may turn on, and at nothing else. */
export async function observe(deps: ReconcileDeps, subject: ObservedRun, results: EffectResults): Promise<Observed> {
  const { record } = subject;
  if (isOver(record)) return { ...NOTHING_OBSERVED, ...results };
  const attempt = liveAttempt(record);
  const job =
    attempt && !isAccepted(results) ? await describeJob(deps.sagemaker, record, attempt) : NOTHING_OBSERVED.job;
  const isCreated = attempt?.phase === 'created';
  const mayHaveRun = job.kind === 'absent';
  const isLive = job.kind === 'present' && LIVE.includes(job.status);
  const isWanted = isCreated || mayHaveRun || mayLaunch(record, attempt);
  const mayWait = isLive && !isDueForListing(record, job, deps.now().getTime());
  const [beat, listed, startFrom] = await Promise.all([
    isCreated ? ownHeartbeat(deps, subject) : ({} as HeartbeatReading),
    isWanted && !mayWait ? ownCheckpoints(deps, subject, isLive) : NOTHING_OBSERVED.checkpoints,
    mayLaunch(record, attempt) && isLocated(subject) ? findStart(deps, subject) : undefined,
  ]);
  // Without a heartbeat, what was written last is the only sign of life.
  const checkpoints = mayWait && !beat.heartbeat ? await ownCheckpoints(deps, subject, isLive) : listed;
  const rungs = needsRung(job, record, attempt)
    ? { rungsThatDoNotFit: tooSmall(deps, subject), rungsAboveQuota: await aboveQuota(deps, subject) }
    : {};
  return { ...NOTHING_OBSERVED, job, ...beat, checkpoints, startFrom, ...rungs, ...results };
}

const LIVE: readonly string[] = ['InProgress', 'Stopping'];

/** A rung is chosen when an attempt is intended, when one has ended, and while the run waits in the queue. */
const needsRung = (job: Observed['job'], record: RunRecord, attempt: Attempt | undefined): boolean =>
  mayLaunch(record, attempt) ||
  !record.admitted ||
  attempt?.phase === 'intent' ||
  (job.kind === 'present' && !LIVE.includes(job.status));

/** Rungs that do not fit, by the intent that names them: neither changes. */
const tooSmallOf = new WeakMap<RunIntent, string[]>();

/** Rungs of the ladder on which the planner knows that the run cannot fit. */
function tooSmall(deps: ReconcileDeps, { record, intent }: ObservedRun): string[] {
  const known = tooSmallOf.get(intent);
  if (known) return known;
  const fits = (rungId: string) => fitsMemory(runOnRung(intent.spec, rungId), deps.region);
  const found = record.policy.ladder.filter((rung) => !fits(rung.id)).map((rung) => rung.id);
  tooSmallOf.set(intent, found);
  return found;
}

/**
 * Rungs whose needs are above the applied quota: the service refuses them however long they wait. A limit that cannot be read refuses
 * nothing, and a ladder of one rung needs no choice.
 */
async function aboveQuota(deps: ReconcileDeps, { record, intent }: ObservedRun): Promise<string[]> {
  const { ladder } = record.policy;
  if (ladder.length < 2) return [];
  const needs = ladder.map(({ id }) => ({ id, needs: runQuotaNeeds(runOnRung(intent.spec, id)) }));
  const limits = await deps.limits.read(needs.flatMap((rung) => rung.needs));
  const isAbove = ({ name, needed }: QuotaNeed) => {
    const limit = limits.get(name);
    return limit !== undefined && 'value' in limit && needed > limit.value;
  };
  return needs.filter((rung) => rung.needs.some(isAbove)).map(({ id }) => id);
}

/** A fresh Describe might not show it yet; the answer of the create call is better evidence. */
const isAccepted = (results: EffectResults): boolean => results.create?.kind === 'accepted';

const mayLaunch = (record: RunRecord, attempt: Attempt | undefined): boolean =>
  attempt === undefined && record.admitted && record.desired === 'run';

const unlocated = ({ descriptorError = '' }: ObservedRun): string => `the descriptor: ${descriptorError}`;

async function ownHeartbeat(deps: ReconcileDeps, subject: ObservedRun): Promise<HeartbeatReading> {
  if (!isLocated(subject)) return { heartbeatError: unlocated(subject) };
  const { record, descriptor } = subject;
  const { heartbeat } = runPrefixes({ descriptor, runId: record.runId, attempt: record.attempt?.number ?? 1 });
  return readHeartbeat(deps.s3, heartbeat);
}

/** Where the control plane finds the run's checkpoints; undefined when they are not in S3. */
function checkpointPrefix({ record, intent, descriptor }: Located): string | undefined {
  const { mode, s3 } = intent.spec.checkpoints;
  if (mode !== 'direct' && mode !== 'managed') return undefined;
  return withSlash(fillPlaceholders(s3, { descriptor, runId: record.runId }));
}

/** Where commits can be seen, and by which marker. Without a place or a marker the script finds its own checkpoints. */
export function visibleCheckpoints(subject: ObservedRun): { prefix: string; marker?: string } | undefined {
  if (!isLocated(subject) || !subject.record.policy.seesCommits) return undefined;
  const prefix = checkpointPrefix(subject);
  if (!prefix) return undefined;
  const { code, checkpoints } = subject.intent.spec;
  return { prefix, ...(!code.builtin && { marker: checkpoints.committedMarker }) };
}

/** While a job lives only its newest commit matters; the next attempt may need an older one. */
async function ownCheckpoints(
  deps: ReconcileDeps,
  subject: ObservedRun,
  isLive: boolean,
): Promise<CheckpointObservation> {
  if (!isLocated(subject)) return { kind: 'unreadable', error: unlocated(subject) };
  const visible = visibleCheckpoints(subject);
  if (!visible) return { kind: 'listed', committed: [], torn: [] };
  const { marker, prefix } = visible;
  const { badCheckpoints: bad, committed } = subject.record;
  const live = { enough: 1, ...(isSteady(subject.record) && { known: committed }) };
  const listed = await listCheckpoints(deps.s3, prefix, { marker, bad, ...(isLive && live) });
  return listed.kind === 'unreadable' && hasNoneYet(subject) ? { kind: 'listed', committed: [], torn: [] } : listed;
}

/** Nobody has written to a prefix of the run's own before its first attempt: a listing that fails keeps no work from being lost. */
const hasNoneYet = ({ record, intent }: ObservedRun): boolean =>
  record.attempt === undefined && record.committed === null && intent.spec.checkpoints.s3.includes('{runId}');

/** `checkpoints.startFrom`: another run of the team, one checkpoint, or a prefix with several. */
async function findStart(deps: ReconcileDeps, subject: Located): Promise<Observed['startFrom']> {
  const { startFrom } = subject.intent.spec.checkpoints;
  if (startFrom === undefined) return undefined;
  const prefix = startFrom.startsWith('s3://') ? withSlash(startFrom) : await prefixOfRun(deps, subject, startFrom);
  if (!prefix) return { missing: `${startFrom} is no run of team ${subject.record.team} with checkpoints in S3` };
  const folder = /^(.*\/)step-\d+\/$/.exec(prefix);
  const listed = await listCheckpoints(deps.s3, folder?.[1] ?? prefix);
  if (listed.kind === 'unreadable') return { unreadable: `${startFrom} cannot be listed: ${listed.error}` };
  if (listed.kind !== 'listed') return { unreadable: `${startFrom} was not listed` };
  const found = folder ? listed.committed.find((c) => c.uri === prefix) : listed.committed[0];
  return found ? asStart(found) : { missing: `${startFrom} has no complete checkpoint` };
}

/** A run that begins where another was counts its steps on, but has committed nothing itself. */
const asStart = (checkpoint: Checkpoint): Checkpoint => ({ ...checkpoint, attempt: null });

async function prefixOfRun(deps: ReconcileDeps, subject: Located, runId: string): Promise<string | undefined> {
  const [other, intent] = await Promise.all([deps.store.find(runId), deps.store.findIntent(runId)]);
  if (!other || !intent || other.team !== subject.record.team) return undefined;
  return checkpointPrefix({ record: other, intent, descriptor: subject.descriptor });
}

const withSlash = (uri: string): string => (uri.endsWith('/') ? uri : `${uri}/`);
