import { DeleteObjectsCommand, ListObjectsV2Command, paginateListObjectsV2, type S3Client } from '@aws-sdk/client-s3';
import { STANDING_PRICES } from '../../core/catalog/prices/prices';
import type { Descriptor } from '../../core/config/descriptor';
import { bucketAndKey, fillPlaceholders, isWithin, parseS3Uri } from '../../core/config/formats/places';
import { issue } from '../../core/config/issue';
import type { DeleteAnswer, Refusal, RequestOf } from '../../core/contracts/control';
import { runPrefixes } from '../../core/job/plan';
import { forgetFiles } from '../../core/lifecycle/intent';
import { isOver, type RunRecord } from '../../core/lifecycle/record';
import { readDescriptor } from '../shared/descriptors';
import type { RunIntent } from '../shared/items';
import { changeRun } from './change-run';
import type { ControlDeps } from './deps';
import { liveIssue, refusal } from './own-run';

/** Pages of 1,000 objects that one call counts: about 20 s. */
const MAX_PAGES = 200;
/** Pages that one call deletes; the caller asks again until nothing is left. */
const MAX_DELETED_PAGES = 20;

const LIVE = { rule: 'delete/live', must: 'must be over before its files can be deleted' };

/**
 * Deletes what a run that is over left below its own prefixes: checkpoints, output, code and job files. Its items in the run table stay until
 * they expire, because they hold what was spent. Without `confirm` nothing is changed. The run cannot be resumed afterwards; a call that is
 * repeated goes on where the last one ended.
 */
export async function deleteRun(
  deps: ControlDeps,
  own: RunRecord,
  { confirm }: RequestOf<'delete'>,
): Promise<DeleteAnswer | Refusal> {
  const descriptor = await readDescriptor(deps, own.team);
  const { artifacts, checkpoints } = runPrefixes({ descriptor, runId: own.runId, attempt: 1 });
  const folders = [checkpoints, artifacts];
  const refused = isOver(own) ? await inUse(deps, own, descriptor, folders) : liveIssue(own, deps.region, LIVE);
  if (refused) return refusal(refused);
  const now = deps.now().getTime();
  const record = confirm ? await changeRun(deps, own, (r) => forgetFiles(r, now)) : own;
  // Somebody may have resumed it meanwhile.
  if (!isOver(record)) return refusal(liveIssue(record, deps.region, LIVE));
  const deleted = confirm ? await deleteFolders(deps.s3, folders) : 0;
  const counted = await Promise.all(folders.map((uri) => count(deps.s3, uri)));
  const bytes = counted.reduce((sum, place) => sum + place.bytes, 0);
  return {
    ok: true,
    runId: own.runId,
    places: counted.map(({ uri, objects, bytes }) => ({ uri, objects, bytes })),
    isWhole: counted.every(({ isWhole }) => isWhole),
    usdPerMonth: STANDING_PRICES.regions.some((region) => region === deps.region)
      ? (bytes / 1e9) * STANDING_PRICES.s3GbMonth
      : null,
    kept: placesOf(await deps.store.findIntent(own.runId), own, descriptor).filter(
      (place) => !folders.some((folder) => isWithin(place, folder)),
    ),
    deleted,
  };
}

/** Where a run was told to write. */
function placesOf(intent: RunIntent | undefined, { runId }: RunRecord, descriptor: Descriptor): string[] {
  const { checkpoints, output } = intent?.spec ?? {};
  const written = [checkpoints?.s3, output?.s3].filter((uri) => uri !== undefined);
  return written.map((uri) => fillPlaceholders(uri, { descriptor, runId }));
}

/** The issue when a run of the team that is not over reads or writes files of this run; otherwise undefined. */
async function inUse(deps: ControlDeps, { runId, team }: RunRecord, descriptor: Descriptor, folders: string[]) {
  const others = (await deps.store.active()).filter(
    (other) => other.runId !== runId && other.team === team && !isOver(other),
  );
  for (const other of others) {
    const intent = await deps.store.findIntent(other.runId);
    const texts = textsIn(intent?.spec).map((text) => fillPlaceholders(text, { descriptor, runId: other.runId }));
    const uses = (text: string) => folders.some((folder) => isWithin(text, folder) || isWithin(folder, text));
    if (intent?.spec.checkpoints.startFrom === runId || texts.some((text) => text.startsWith('s3://') && uses(text)))
      return usedIssue(runId, other);
  }
  return undefined;
}

function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  return value !== null && typeof value === 'object' ? Object.values(value).flatMap(textsIn) : [];
}

async function count(client: S3Client, uri: string) {
  const { bucket: Bucket, key: Prefix } = parseS3Uri(uri);
  let [objects, bytes, pages] = [0, 0, 0];
  for await (const { Contents = [], NextContinuationToken } of paginateListObjectsV2({ client }, { Bucket, Prefix })) {
    objects += Contents.length;
    bytes += Contents.reduce((sum, { Size = 0 }) => sum + Size, 0);
    pages += 1;
    if (pages === MAX_PAGES && NextContinuationToken !== undefined) return { uri, objects, bytes, isWhole: false };
  }
  return { uri, objects, bytes, isWhole: true };
}

/** @returns number of deleted objects */
async function deleteFolders(s3: S3Client, folders: readonly string[]): Promise<number> {
  let [deleted, pages] = [0, 0];
  for (const uri of folders) {
    const { Bucket, Key: Prefix } = bucketAndKey(uri);
    while (pages < MAX_DELETED_PAGES) {
      pages += 1;
      const { Contents = [] } = await s3.send(new ListObjectsV2Command({ Bucket, Prefix }));
      if (Contents.length === 0) break;
      const Delete = { Objects: Contents.map(({ Key = '' }) => ({ Key })), Quiet: true };
      const { Errors: [first] = [] } = await s3.send(new DeleteObjectsCommand({ Bucket, Delete }));
      if (first) throw new Error(`s3://${Bucket}/${first.Key} cannot be deleted: ${first.Code}: ${first.Message}`);
      deleted += Contents.length;
    }
  }
  return deleted;
}

const usedIssue = (runId: string, other: RunRecord) =>
  issue('delete/in-use', 'error', 'run', {
    must: 'must not have files that another run uses',
    got: `${runId}, used by ${other.runId}, ${other.state}`,
    fix: `wait for ${other.runId}, or stop it first`,
  });
