import type { Descriptor } from '../../../core/config/descriptor';
import { fillPlaceholders, mayUsePlace, withSlash } from '../../../core/config/formats/places';
import { runPrefixes } from '../../../core/job/plan';
import type { JobFiles, RunRecord } from '../../../core/lifecycle/record';
import { readDescriptor } from '../../shared/descriptors';
import { describeError } from '../../shared/errors';
import type { RunIntent } from '../../shared/items';
import type { ReconcileDeps } from '../deps';

/** A run with everything from which its next job is created. */
export interface WholeRun {
  record: RunRecord;
  intent: RunIntent;
  /** Undefined when it could not be read: then nothing of the run in S3 can be found, and no job can be created. */
  descriptor?: Descriptor;
  /** Why it could not be read. */
  descriptorError?: string;
}

export type LocatedRun = WholeRun & { descriptor: Descriptor };
export const isLocated = (run: WholeRun): run is LocatedRun => run.descriptor !== undefined;

/** A run that is being observed. Most observations are of a live job and need only the record, which says where the job writes. */
export interface Subject {
  record: RunRecord;
  /** Reads the intent of the run and its team's descriptor, once. Undefined when the table does not contain the intent. */
  whole(): Promise<WholeRun | undefined>;
}

/** The run as currently stored in the table; undefined when it does not exist. */
export async function readSubject(deps: ReconcileDeps, runId: string): Promise<Subject | undefined> {
  const record = await deps.store.find(runId);
  return record && subjectOf(deps, record);
}

function subjectOf(deps: ReconcileDeps, record: RunRecord): Subject {
  let read: Promise<WholeRun | undefined> | undefined;
  const whole = () => {
    read ??= readWhole(deps, record);
    return read;
  };
  return { record, whole };
}

async function readWhole(deps: ReconcileDeps, record: RunRecord): Promise<WholeRun | undefined> {
  const { runId, team } = record;
  const intent = await deps.store.findIntent(runId);
  if (!intent) return undefined;
  try {
    return { record, intent, descriptor: await readDescriptor(deps, team) };
  } catch (error) {
    // Without a descriptor no job starts; stopping and observing a live job do not depend on it.
    const descriptorError = describeError(error);
    deps.log('error', 'the descriptor could not be read', { runId, team, error: descriptorError });
    return { record, intent, descriptorError };
  }
}

/** Where the run's current job writes, or its next one will write. */
export function jobFilesOf(run: LocatedRun): JobFiles {
  const { record, intent, descriptor } = run;
  const { heartbeat } = runPrefixes({ descriptor, runId: record.runId, attempt: record.attempt?.number ?? 1 });
  const prefix = record.policy.seesCommits ? checkpointPrefix(run) : undefined;
  if (!prefix) return { heartbeat };
  const { code, checkpoints } = intent.spec;
  return { heartbeat, checkpoints: { prefix, ...(!code.builtin && { marker: checkpoints.committedMarker }) } };
}

/** Where the control plane finds the run's checkpoints; undefined when they are not in S3, or not where its team keeps checkpoints. */
export function checkpointPrefix({ record, intent, descriptor }: LocatedRun): string | undefined {
  const { mode, s3 } = intent.spec.checkpoints;
  if (mode !== 'direct' && mode !== 'managed') return undefined;
  const prefix = withSlash(fillPlaceholders(s3, { descriptor, runId: record.runId }));
  return mayUsePlace('checkpoints', prefix, descriptor) ? prefix : undefined;
}

/** The folders of the run and of its team in the checkpoint bucket: the driver writes its heartbeat directly into the first. */
export function ownFolders({ heartbeat }: JobFiles): { run: string; team: string } {
  const run = parentOf(heartbeat);
  return { run, team: parentOf(run) };
}

const parentOf = (uri: string): string => uri.replace(/[^/]+\/?$/, '');
