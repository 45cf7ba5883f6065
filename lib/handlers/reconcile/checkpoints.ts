import { GetObjectCommand, paginateListObjectsV2, type S3Client } from '@aws-sdk/client-s3';
import type { CheckpointObservation } from '../../lifecycle/observed';
import type { Checkpoint } from '../../lifecycle/record';
import { parseS3Uri } from '../shared/s3-uri';
import { describeError } from './describe';

export const MARKER = 'COMMITTED.json';
/** Of the newest complete ones; two are needed when the newest proves unreadable, `keep` is 3 by default. */
const ENOUGH = 3;

type Listed = Extract<CheckpointObservation, { kind: 'listed' }>;

/**
 * The newest complete checkpoints below a prefix: COMMITTED.json is there, and every object that it lists with the size that it
 * says (contract/runtime.md). One list of the prefix and one read per marker.
 * @param marker glob of an own script's marker (`checkpoints.committedMarker`); its objects are not known and not checked
 */
export async function listCheckpoints(
  s3: S3Client,
  prefixUri: string,
  marker?: string,
): Promise<CheckpointObservation> {
  try {
    const sizes = await sizesBelow(s3, prefixUri);
    return marker === undefined ? await committed(s3, prefixUri, sizes) : marked(prefixUri, sizes, marker);
  } catch (error) {
    return { kind: 'unreadable', error: describeError(error) };
  }
}

/** Bytes of every object below the prefix, by its name relative to it. */
export async function sizesBelow(s3: S3Client, prefixUri: string): Promise<Map<string, number>> {
  const { bucket, key } = parseS3Uri(prefixUri);
  const sizes = new Map<string, number>();
  for await (const page of paginateListObjectsV2({ client: s3 }, { Bucket: bucket, Prefix: key })) {
    for (const object of page.Contents ?? []) {
      if (object.Key) sizes.set(object.Key.slice(key.length), object.Size ?? 0);
    }
  }
  return sizes;
}

async function committed(s3: S3Client, prefixUri: string, sizes: ReadonlyMap<string, number>): Promise<Listed> {
  const found: Listed = { kind: 'listed', committed: [], torn: [] };
  const folders = [...sizes.keys()].flatMap((name) => {
    const step = /^step-(\d+)\/COMMITTED\.json$/.exec(name)?.[1];
    return step === undefined ? [] : [{ step: Number(step), folder: `step-${step}/` }];
  });
  for (const { folder } of folders.sort((a, b) => b.step - a.step)) {
    if (found.committed.length === ENOUGH) break;
    const uri = `${prefixUri}${folder}`;
    const verdict = judgeMarker(await readMarker(s3, `${uri}${MARKER}`), folder, sizes);
    if (typeof verdict === 'string') found.torn.push({ uri, why: verdict });
    else found.committed.push({ uri, ...verdict });
  }
  return found;
}

async function readMarker(s3: S3Client, uri: string): Promise<string> {
  const { bucket, key } = parseS3Uri(uri);
  const { Body } = await s3.send(new GetObjectCommand({ Bucket: bucket, Key: key }));
  return (await Body?.transformToString()) ?? '';
}

interface Marker {
  step: number;
  attempt?: number;
  objects: { key: string; bytes: number }[];
}

/** Step and writer of a whole checkpoint, or why it is not whole. */
function judgeMarker(
  text: string,
  folder: string,
  sizes: ReadonlyMap<string, number>,
): Pick<Checkpoint, 'step' | 'attempt'> | string {
  const marker = parseMarker(text);
  if (!marker) return `${MARKER} cannot be read`;
  const wrong = marker.objects.filter(({ key, bytes }) => sizes.get(`${folder}${key}`) !== bytes);
  if (wrong.length === 0) return { step: marker.step, attempt: marker.attempt ?? null };
  const names = wrong.slice(0, 3).map((o) => o.key);
  return `${wrong.length} objects are missing or have another size (${names.join(', ')})`;
}

function parseMarker(text: string): Marker | undefined {
  try {
    const parsed = JSON.parse(text) as Marker;
    const isWhole = Number.isInteger(parsed.step) && Array.isArray(parsed.objects);
    return isWhole && parsed.objects.every((o) => typeof o.key === 'string' && typeof o.bytes === 'number')
      ? parsed
      : undefined;
  } catch {
    return undefined;
  }
}

/** Checkpoints of an own script: the folder of each object that the glob matches; the step is the first number in its path. */
function marked(prefixUri: string, sizes: ReadonlyMap<string, number>, marker: string): Listed {
  const pattern = globPattern(marker);
  const committed = [...sizes.keys()]
    .filter((name) => pattern.test(name))
    .map((name) => ({
      uri: `${prefixUri}${name.slice(0, name.lastIndexOf('/') + 1)}`,
      step: Number(/\d+/.exec(name)?.[0] ?? 0),
      attempt: null,
    }))
    .sort((a, b) => b.step - a.step);
  return { kind: 'listed', committed, torn: [] };
}

/** `*` stands for anything within one folder. */
export function globPattern(glob: string): RegExp {
  const escaped = glob.replace(/[.+?^${}()|[\]\\]/g, '\\$&').replaceAll('*', '[^/]*');
  return new RegExp(`^${escaped}$`);
}
