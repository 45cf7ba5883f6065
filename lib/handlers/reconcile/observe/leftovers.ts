import { PutObjectTaggingCommand, type S3Client } from '@aws-sdk/client-s3';
import { LEFTOVER_TAG } from '../../../contracts/storage';
import { bucketAndKey } from '../../../spec/formats/s3-uri';
import { byStep, MARKER, matchesMarker } from './checkpoints';
import { listFolder } from './folders';

/** Number of parallel calls. An interrupted run leaves few unfinished folders, with one object per rank. */
const AT_ONCE = 20;
const MOST = 4000;
/** Number of newest folders that are checked; older unfinished ones only cost storage. */
const MOST_FOLDERS = 200;

/**
 * Objects of checkpoints that were never committed, by their names relative to the prefix. Covers only folders `step-<n>/`, because other
 * objects are not ours. A damaged checkpoint, which has its marker, is kept for inspection.
 */
async function leftovers(s3: S3Client, prefixUri: string, marker?: string): Promise<string[]> {
  const { folders } = await listFolder(s3, prefixUri);
  const found: string[] = [];
  for (const folder of byStep(folders).slice(0, MOST_FOLDERS)) {
    const isMarker =
      marker === undefined
        ? (name: string) => name === `${folder}${MARKER}`
        : (name: string) => matchesMarker(marker, name);
    const { objects } = await listFolder(s3, `${prefixUri}${folder}`, { deep: true });
    const names = [...objects.keys()].map((name) => `${folder}${name}`);
    if (!names.some(isMarker)) found.push(...names);
    if (found.length >= MOST) break;
  }
  return found;
}

/**
 * Tags these objects, so that the bucket's lifecycle rule expires them after `storage.checkpointExpirationDays`. Only for a run that is
 * over, because a save may be in progress before. An object that a resumed run writes again has no tag. Tagging twice changes nothing.
 * @returns how many there are, and how many were tagged
 */
export async function tagLeftovers(
  s3: S3Client,
  prefixUri: string,
  marker?: string,
): Promise<{ found: number; tagged: number }> {
  const found = await leftovers(s3, prefixUri, marker);
  const waiting = found.slice(0, MOST);
  const tagged = waiting.length;
  const Tagging = { TagSet: [{ Key: LEFTOVER_TAG.key, Value: LEFTOVER_TAG.value }] };
  const work = async () => {
    for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) {
      await s3.send(new PutObjectTaggingCommand({ ...bucketAndKey(`${prefixUri}${name}`), Tagging }));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return { found: found.length, tagged };
}
