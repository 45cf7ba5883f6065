import { fillPlaceholders, runPrefixes } from '../../job/plan';
import { runOnRung } from '../../lifecycle/ladder';
import { type CheckpointObservation, NOTHING_OBSERVED, type Observed } from '../../lifecycle/observed';
import { type Attempt, type Checkpoint, isOver, liveAttempt, type RunRecord } from '../../lifecycle/record';
import type { Descriptor } from '../../spec/descriptor';
import { readHeartbeat } from '../shared/heartbeat';
import type { RunIntent } from '../shared/items';
import { fitsMemory } from '../shared/memory-check';
import { listCheckpoints } from './checkpoints';
import type { ReconcileDeps } from './deps';
import { describeJob } from './describe';

/** What was learnt in an earlier round of the same invocation. */
export type Carried = Pick<Observed, 'create' | 'published'>;

/** A run with what its observation needs beside the record. */
export interface Subject {
  record: RunRecord;
  intent: RunIntent;
  descriptor: Descriptor;
}

/** Looks at everything that a decision on this run may turn on, and at nothing else. */
export async function observe(deps: ReconcileDeps, subject: Subject, carried: Carried): Promise<Observed> {
  const { record } = subject;
  if (isOver(record)) return { ...NOTHING_OBSERVED, ...carried };
  const attempt = liveAttempt(record);
  const job =
    attempt && !isAccepted(carried) ? await describeJob(deps.sagemaker, record, attempt) : NOTHING_OBSERVED.job;
  const isCreated = attempt?.phase === 'created';
  const mayHaveRun = job.kind === 'absent';
  const [heartbeat, checkpoints, startFrom] = await Promise.all([
    isCreated ? readHeartbeat(deps.s3, prefixesOf(subject).heartbeat) : undefined,
    isCreated || mayHaveRun || mayLaunch(record, attempt)
      ? ownCheckpoints(deps, subject)
      : NOTHING_OBSERVED.checkpoints,
    mayLaunch(record, attempt) ? findStart(deps, subject) : undefined,
  ]);
  const rungsThatDoNotFit = needsRung(job, record, attempt) ? tooSmall(deps, subject) : [];
  return { ...NOTHING_OBSERVED, job, heartbeat, checkpoints, startFrom, rungsThatDoNotFit, ...carried };
}

/** A rung is chosen when an attempt is intended, and when one has ended. */
const needsRung = (job: Observed['job'], record: RunRecord, attempt: Attempt | undefined): boolean =>
  mayLaunch(record, attempt) || (job.kind === 'present' && !['InProgress', 'Stopping'].includes(job.status));

/** Rungs of the ladder on which the planner knows that the run cannot fit. */
function tooSmall(deps: ReconcileDeps, { record, intent }: Subject): string[] {
  const fits = (rungId: string) => fitsMemory(runOnRung(intent.spec, rungId), deps.region);
  return record.policy.ladder.filter((rung) => !fits(rung.id)).map((rung) => rung.id);
}

/** A fresh Describe might not show it yet; the answer of the create call is better evidence. */
const isAccepted = (carried: Carried): boolean => carried.create?.kind === 'accepted';

const mayLaunch = (record: RunRecord, attempt: Attempt | undefined): boolean =>
  attempt === undefined && record.admitted && record.desired === 'run';

const prefixesOf = ({ record, descriptor }: Subject) =>
  runPrefixes({ descriptor, runId: record.runId, attempt: record.attempt?.number ?? 1 });

/** Where the control plane finds the run's checkpoints; undefined when they are not in S3. */
function checkpointPrefix({ record, intent, descriptor }: Subject): string | undefined {
  const { mode, s3 } = intent.spec.checkpoints;
  if (mode !== 'direct' && mode !== 'managed') return undefined;
  return withSlash(fillPlaceholders(s3, { descriptor, runId: record.runId }));
}

/** Where commits can be seen, and by which marker. Without a place or a marker the script finds its own checkpoints. */
export function visibleCheckpoints(subject: Subject): { prefix: string; marker?: string } | undefined {
  const prefix = checkpointPrefix(subject);
  if (!prefix || !subject.record.policy.seesCommits) return undefined;
  const { code, checkpoints } = subject.intent.spec;
  return { prefix, ...(!code.builtin && { marker: checkpoints.committedMarker }) };
}

async function ownCheckpoints(deps: ReconcileDeps, subject: Subject): Promise<CheckpointObservation> {
  const visible = visibleCheckpoints(subject);
  if (!visible) return { kind: 'listed', committed: [], torn: [] };
  return listCheckpoints(deps.s3, visible.prefix, visible.marker);
}

/** `checkpoints.startFrom`: another run of the team, one checkpoint, or a prefix with several. */
async function findStart(deps: ReconcileDeps, subject: Subject): Promise<Observed['startFrom']> {
  const { startFrom } = subject.intent.spec.checkpoints;
  if (startFrom === undefined) return undefined;
  const prefix = startFrom.startsWith('s3://') ? withSlash(startFrom) : await prefixOfRun(deps, subject, startFrom);
  if (!prefix) return { missing: `${startFrom} is no run of team ${subject.record.team} with checkpoints in S3` };
  const folder = /^(.*\/)step-\d+\/$/.exec(prefix);
  const listed = await listCheckpoints(deps.s3, folder?.[1] ?? prefix);
  if (listed.kind !== 'listed') return { missing: `${startFrom} cannot be listed` };
  const found = folder ? listed.committed.find((c) => c.uri === prefix) : listed.committed[0];
  return found ? asStart(found) : { missing: `${startFrom} has no complete checkpoint` };
}

/** A run that begins where another was counts its steps on, but has committed nothing itself. */
const asStart = (checkpoint: Checkpoint): Checkpoint => ({ ...checkpoint, attempt: null });

async function prefixOfRun(deps: ReconcileDeps, subject: Subject, runId: string): Promise<string | undefined> {
  const [other, intent] = await Promise.all([deps.store.find(runId), deps.store.findIntent(runId)]);
  if (!other || !intent || other.team !== subject.record.team) return undefined;
  return checkpointPrefix({ record: other, intent, descriptor: subject.descriptor });
}

const withSlash = (uri: string): string => (uri.endsWith('/') ? uri : `${uri}/`);
