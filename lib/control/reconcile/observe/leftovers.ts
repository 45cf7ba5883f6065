import { PutObjectTaggingCommand, type S3Client } from '@aws-sdk/client-s3';
import { bucketAndKey } from '../../../core/config/formats/places';
import { LEFTOVER_TAG } from '../../../core/contracts/storage';
import { eachInTurn } from '../../../shared/aws/pace';
import { whileTimeRemains } from '../../shared/deadline';
import type { ReconcileDeps } from '../deps';
import { AT_ONCE, byStep, MARKER, markersIn, matchesMarker } from './checkpoints';
import { listFolder } from './folders';

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
export async function tagLeftovers(
  deps: Pick<ReconcileDeps, 's3' | 'remainingMs'>,
  prefixUri: string,
  marker = `*/${MARKER}`,
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
