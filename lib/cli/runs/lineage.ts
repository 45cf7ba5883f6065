import pc from 'picocolors';
import { z } from 'zod';
import type { Descriptor } from '../../core/config/descriptor';
import { parseJson } from '../../core/config/formats/json';
import { fillPlaceholders } from '../../core/config/formats/places';
import { plainLines, textTable } from '../../core/config/formats/plain-text';
import { lineageSchema } from '../../core/contracts/lineage';
import { runCommand } from '../../core/contracts/names';
import { CHECKPOINT_MARKER } from '../../core/contracts/storage';
import {
  type CheckpointOrigin,
  checkpointOrigin,
  type Lineage,
  type LineageRun,
  lineageRows,
  lineageRun,
  runOf,
} from '../../report/lineage/lineage';
import { newestComplete } from '../../report/read/checkpoint-list';
import { findDescriptor } from '../environment/environment';
import { EXIT, Refusal, UsageError } from '../exit';
import type { CommonOptions } from '../inputs';
import { json, type Terminal } from '../terminal';
import { attempt, readStatus } from './control-client';
import { clientForAddresses, committedCheckpoints, s3Folder, textIn } from './reports/committed-checkpoints';
import type { ReadSources } from './reports/report-sources';

/** `slipway status RUN|s3://... --lineage`: shows the data, code, image and earlier runs of a checkpoint, published weights or a run. */
export async function lineage(of: string, options: CommonOptions, terminal: Terminal): Promise<number> {
  const found = await readLineage(await findDescriptor(options), of);
  terminal.out(options.json ? json(found) : lineageText(plainLines(found)));
  return EXIT.done;
}

/** One block for each run, newest first. */
function lineageText({ checkpoint, runs, notes }: Lineage): string {
  const head = checkpoint
    ? [`checkpoint ${checkpoint.uri}`, `step ${checkpoint.step}, saved ${checkpoint.savedAt ?? '-'}`, '']
    : [];
  return [...head, ...runs.flatMap(runText), ...notes.map((note) => pc.yellow(`not known: ${note}`))]
    .join('\n')
    .trimEnd();
}

function runText(run: LineageRun): string[] {
  const [first = [], ...rest] = lineageRows(run);
  return [`${pc.bold(run.runId)}  ${run.state}`, textTable(first, rest), ''];
}

/** Name of the lineage file beside published weights. */
export const PUBLISHED = 'slipway.json';
/** Maximum number of runs in one chain: a longer one is truncated, and a note says so. */
const MAX_RUNS = 16;

/** A run to read, and the relevant checkpoint of it or its folder; absent = its newest committed one. */
interface Wanted {
  runId: string;
  checkpoint?: CheckpointOrigin;
  uri?: string;
  /** The record beside published weights. @default - the run was not found through published weights */
  published?: Lineage;
}

/** Data of a run that has already been read: the control function's answer with timeline and configuration, and its checkpoints. */
type KnownRun = Pick<ReadSources, 'status' | 'checkpoints'>;

/**
 * Reads the complete origin of a run id, a checkpoint or published weights.
 * @param known a run that is not read again. @default - all are read
 */
export async function readLineage(descriptor: Descriptor, of: string, known?: KnownRun): Promise<Lineage> {
  const first: Wanted = of.startsWith('s3://') ? await wantedAt(descriptor, of) : { runId: of };
  const notes: string[] = [];
  const read = (wanted: Wanted) => readOne(descriptor, wanted, notes, known);
  try {
    const { run, checkpoint } = await read(first);
    const runs = await withParents(run, read, notes, (runId) => runCommand('status', runId, descriptor, '--lineage'));
    return { of, checkpoint: checkpoint ?? null, runs, notes };
  } catch (error) {
    const { runId, published } = first;
    if (!published || !(error instanceof Refusal)) throw error;
    // The record of a run may be deleted before the weights are, and other environments publish weights too.
    const note = `${runId}: shown as in ${PUBLISHED}: ${error.issues[0]?.message ?? 'refused'}`;
    return { ...published, of, notes: [...published.notes, note] };
  }
}

async function withParents(
  run: LineageRun,
  read: (wanted: Wanted) => ReturnType<typeof readOne>,
  notes: string[],
  command: (runId: string) => string,
): Promise<LineageRun[]> {
  const runs = [run];
  const waiting = parentRuns(run);
  for (let next = waiting.shift(); next; next = waiting.shift()) {
    const { runId } = next;
    if (runs.some((one) => one.runId === runId)) continue;
    if (runs.length === MAX_RUNS) {
      notes.push(
        `${runId}: not followed, because at most ${MAX_RUNS} runs are shown; run ${command(runId)} to continue from there`,
      );
      break;
    }
    const wanted = next;
    const { value: found, why } = await attempt(() => read(wanted));
    if (found) {
      runs.push(found.run);
      waiting.push(...parentRuns(found.run));
    } else notes.push(`${runId}: not followed: ${why}`);
  }
  return runs;
}

/** Other runs from which a run started, with the checkpoint if its folder is known. */
const parentRuns = ({ runId, parents }: LineageRun): Wanted[] =>
  parents.flatMap((parent) =>
    parent.runId === null || parent.runId === runId
      ? []
      : [{ runId: parent.runId, ...(parent.kind === 'checkpoint' && parent.step !== null && { uri: parent.source }) }],
  );

async function readOne(
  descriptor: Descriptor,
  { runId, checkpoint: given, uri }: Wanted,
  notes: string[],
  known?: KnownRun,
) {
  const checkpoint = uri === undefined ? given : await checkpointAt(descriptor, uri);
  const own = known?.status.runId === runId ? known : undefined;
  const { configuration, ...status } =
    own?.status ?? (await readStatus(descriptor, runId, { timeline: true, configuration: true }));
  if (!configuration) notes.push(`${runId}: the launcher did not return its configuration`);
  const list = async () => own?.checkpoints ?? attempt(() => committedCheckpoints(descriptor, runId));
  const newest = checkpoint ?? newestCheckpoint(runId, await list(), notes);
  const fill = (text: string) => fillPlaceholders(text, { descriptor, runId });
  return { run: lineageRun({ status, configuration, checkpoint: newest, fill }), checkpoint: newest };
}

/** A run without checkpoints, or whose bucket may not be read, also has a lineage. */
function newestCheckpoint(runId: string, { value, why }: KnownRun['checkpoints'], notes: string[]) {
  if (!value) {
    notes.push(`${runId}: its checkpoints were not read: ${why}`);
    return undefined;
  }
  const newest = newestComplete(value);
  if (!newest) notes.push(`${runId}: has no complete checkpoint, so digests of data and configuration are not known`);
  return newest?.origin;
}

async function checkpointAt({ region }: Descriptor, uri: string): Promise<CheckpointOrigin | undefined> {
  const folder = s3Folder(uri);
  if (!folder) return undefined;
  const marker = await textIn(clientForAddresses(region), folder.bucket, `${folder.prefix}${CHECKPOINT_MARKER}`);
  return marker === undefined ? undefined : checkpointOrigin(uri, marker);
}

/** The run for an S3 URI: that of a checkpoint, or of weights that `slipway publish` wrote. */
async function wantedAt(descriptor: Descriptor, address: string): Promise<Wanted> {
  const folder = s3Folder(address);
  if (!folder) throw new UsageError(`lineage: must be a run id or s3://bucket/prefix/, got ${address}; check the URI`);
  const checkpoint = await checkpointAt(descriptor, address);
  // The code of a run writes what its checkpoint says; in the environment's bucket, the folder tells which run that was.
  const written = folder.bucket === descriptor.checkpointBucket ? runOf(address) : null;
  const runId = checkpoint && (written ?? checkpoint.runId);
  if (runId) return { runId, checkpoint };
  const text = await textIn(clientForAddresses(descriptor.region), folder.bucket, `${folder.prefix}${PUBLISHED}`);
  const { data } = z.object({ lineage: lineageSchema }).safeParse(parseJson(text ?? ''));
  const [run] = data?.lineage.runs ?? [];
  if (data && run)
    return { runId: run.runId, checkpoint: data.lineage.checkpoint ?? undefined, published: data.lineage };
  throw new UsageError(
    `lineage: must be a folder with COMMITTED.json of a run or with ${PUBLISHED}, got ${address}; slipway report RUN --json lists the checkpoints of a run`,
  );
}
