import { fillPlaceholders, runPrefixes } from '../../../job/plan';
import type { JobFiles, RunRecord } from '../../../lifecycle/record';
import type { Descriptor } from '../../../spec/descriptor';
import { readDescriptor } from '../../shared/descriptors';
import { describeError } from '../../shared/errors';
import type { RunIntent } from '../../shared/items';
import type { ReconcileDeps } from '../deps';

/** A run with everything that its next job is made from. */
export interface WholeRun {
  record: RunRecord;
  intent: RunIntent;
  /** Undefined when it could not be read: nothing of the run in S3 can be found then, and no job be made. */
  descriptor?: Descriptor;
  /** Why it could not be read. */
  descriptorError?: string;
}

/** A run whose descriptor is known. */
export type LocatedRun = WholeRun & { descriptor: Descriptor };
/** Whether the descriptor of the run is known. */
export const isLocated = (run: WholeRun): run is LocatedRun => run.descriptor !== undefined;

/** A run that is looked at. Most looks are at a live job, and need no more than the record: it says where the job writes. */
export interface Subject {
  record: RunRecord;
  /** Reads what the run was made from and its team's descriptor, once. Undefined when the table does not hold what it was made from. */
  whole(): Promise<WholeRun | undefined>;
}

/** The run as the table holds it now; undefined where there is none. */
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
    // Without it nothing new starts; a stop, and what is known of a live job, do not depend on it.
    const descriptorError = describeError(error);
    deps.log('error', 'the descriptor could not be read', { runId, team, error: descriptorError });
    return { record, intent, descriptorError };
  }
}

/** Where the run's present job writes, or its next one will. */
export function jobFilesOf(run: LocatedRun): JobFiles {
  const { record, intent, descriptor } = run;
  const { heartbeat } = runPrefixes({ descriptor, runId: record.runId, attempt: record.attempt?.number ?? 1 });
  const prefix = record.policy.seesCommits ? checkpointPrefix(run) : undefined;
  if (!prefix) return { heartbeat };
  const { code, checkpoints } = intent.spec;
  return { heartbeat, checkpoints: { prefix, ...(!code.builtin && { marker: checkpoints.committedMarker }) } };
}

/** Where the control plane finds the run's checkpoints; undefined when they are not in S3. */
export function checkpointPrefix({ record, intent, descriptor }: LocatedRun): string | undefined {
  const { mode, s3 } = intent.spec.checkpoints;
  if (mode !== 'direct' && mode !== 'managed') return undefined;
  return withSlash(fillPlaceholders(s3, { descriptor, runId: record.runId }));
}

/** The same URI as a prefix. */
export const withSlash = (uri: string): string => (uri.endsWith('/') ? uri : `${uri}/`);
