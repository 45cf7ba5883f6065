import { S3Client } from '@aws-sdk/client-s3';
import type { Descriptor } from '../../../core/config/descriptor';
import { stepNumber } from '../../../core/config/formats/numbers';
import { CHECKPOINT_MARKER } from '../../../core/contracts/storage';
import { checkpointOrigin } from '../../../report/lineage/lineage';
import type { ListedCheckpoint } from '../../../report/read/checkpoint-list';
import { answerOrUndefined } from '../../../shared/aws/answers';
import { eachInTurn } from '../../../shared/aws/pace';
import { objectsBelow } from '../../../shared/aws/pages';
import { MAX_TEXT_BYTES, openObject } from '../../../shared/aws/read-object';
import { awsClient } from '../../aws-client';
import { calling } from '../../aws-errors';

function stepOf(name: string): number | undefined {
  const [, step, object] = /^step-(\d+)\/(.+)$/.exec(name) ?? [];
  return object === CHECKPOINT_MARKER ? stepNumber(step) : undefined;
}

/** The displayed fields of COMMITTED.json (contract: runtime). */
interface Marker {
  step: number;
  worldSize?: number;
  objects: { key: string; bytes: number }[];
}

/** The code of a run writes markers, of any number. */
const [AT_ONCE, MAX_MARKERS] = [16, 10_000];

/** Checkpoints in the run's prefix that have a COMMITTED.json, with one listing and one read each. */
export async function committedCheckpoints(
  { region, checkpointBucket, team }: Descriptor,
  runId: string,
): Promise<ListedCheckpoint[]> {
  const client = awsClient(S3Client, { region });
  const prefix = `runs/${team}/${runId}/`;
  const place = `s3://${checkpointBucket}/${prefix}`;
  return calling(`listing ${place}`, async () => {
    const objects = await objectsBelow(client, checkpointBucket, prefix);
    const sizes = new Map(objects.map(({ key, bytes }) => [key.slice(prefix.length), bytes]));
    const markers = [...sizes].flatMap(([name, bytes]) => {
      const step = stepOf(name);
      return step === undefined || bytes > MAX_TEXT_BYTES ? [] : [{ name, step }];
    });
    const newest = markers.sort((a, b) => a.step - b.step).slice(-MAX_MARKERS);
    const found = await eachInTurn(newest, AT_ONCE, async ({ name }) => {
      const text = await textIn(client, checkpointBucket, `${prefix}${name}`);
      return listedCheckpoint(name, text ?? '', place, sizes);
    });
    return found.filter((one) => one !== undefined);
  });
}

/** Undefined when the marker cannot be read. */
function listedCheckpoint(
  name: string,
  text: string,
  place: string,
  sizes: ReadonlyMap<string, number>,
): ListedCheckpoint | undefined {
  const marker = parseMarker(text);
  if (!marker) return undefined;
  const folder = name.slice(0, name.lastIndexOf('/') + 1);
  const origin = checkpointOrigin(`${place}${folder}`, text);
  return {
    step: marker.step,
    attempt: origin?.attempt ?? null,
    uri: `${place}${folder}`,
    savedAt: origin?.savedAt ?? null,
    objects: marker.objects.length,
    sizeBytes: marker.objects.reduce((sum, o) => sum + o.bytes, 0),
    worldSize: marker.worldSize ?? null,
    isComplete: marker.objects.every((o) => sizes.get(`${folder}${o.key}`) === o.bytes),
    ...(origin && { origin }),
  };
}

function parseMarker(text: string): Marker | undefined {
  try {
    const parsed = JSON.parse(text) as Marker;
    const isWhole =
      stepNumber(String(parsed.step)) !== undefined && parsed.objects.every((o) => typeof o.bytes === 'number');
    return isWhole ? parsed : undefined;
  } catch {
    return undefined;
  }
}

/** Bucket and key of an S3 URI, with a trailing slash; undefined for other text. */
export function s3Folder(address: string): { bucket: string; prefix: string } | undefined {
  const [, bucket, key = ''] = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/(.*))?$/.exec(address) ?? [];
  if (bucket === undefined) return undefined;
  return { bucket, prefix: key === '' || key.endsWith('/') ? key : `${key}/` };
}

/**
 * A client for URIs that people give: also for buckets in other regions, whose region S3 returns in its redirect. Copies run in the region
 * of the target, whatever the region of the source: https://docs.aws.amazon.com/AmazonS3/latest/API/API_CopyObject.html, 2026-11-23.
 */
export const clientForAddresses = (region: string): S3Client =>
  awsClient(S3Client, { region, followRegionRedirects: true });

/** Text of an object; undefined when it does not exist. Throws a ServiceError when it may not be read. */
export async function textIn(client: S3Client, Bucket: string, Key: string): Promise<string | undefined> {
  return calling(`reading s3://${Bucket}/${Key}`, async () => {
    const found = await answerOrUndefined(openObject(client, { Bucket, Key }), 'NoSuchKey');
    return found?.Body.transformToString();
  });
}
