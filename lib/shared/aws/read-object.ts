import { GetObjectCommand, HeadObjectCommand, paginateListObjectsV2, type S3Client } from '@aws-sdk/client-s3';
import { stepNumber } from '../../core/config/formats/numbers';
import { bucketAndKey } from '../../core/config/formats/places';
import { answerOrUndefined } from './answers';
import { itemsOf } from './pages';

/** An object as it was read, and when it was written by S3's clock. */
interface ReadObject {
  text: string;
  writtenAt: Date;
}

/** An object that is not read because of its size. */
export class TooLarge extends Error {
  override readonly name = 'TooLarge';
  constructor(
    bytes: number,
    maxBytes: number,
    readonly writtenAt: Date,
  ) {
    super(`it has ${bytes} bytes, more than ${maxBytes}`);
  }
}

/**
 * Reads an object that a job or a person wrote. Its size is compared before its content is read, so that no object can exhaust the memory
 * of a function. Throws `TooLarge` when it has more than `maxBytes`.
 */
export async function readObject(s3: S3Client, uri: string, maxBytes: number): Promise<ReadObject> {
  const { Body, ContentLength = 0, LastModified } = await s3.send(new GetObjectCommand(bucketAndKey(uri)));
  if (!Body || !LastModified) throw new Error('the answer has no body or no time');
  if (ContentLength > maxBytes) {
    (Body as { destroy?(): void }).destroy?.();
    throw new TooLarge(ContentLength, maxBytes, LastModified);
  }
  return { text: await Body.transformToString(), writtenAt: LastModified };
}

/** The record of a checkpoint and the replication status of the object; undefined before a rule replicates it. */
export interface SeenCopy {
  key: string;
  status: string | undefined;
}

/** Number of runs to inspect: the most recent one may not have a checkpoint yet. */
const RUNS = 5;
/** Number of checkpoints to inspect per run: the newest may be incomplete, without its record. */
const CHECKPOINTS = 3;

/** The launch time in a run id; empty for a custom id. */
const launchedAt = (folder: string): string => /-(\d{12})\/$/.exec(folder)?.[1] ?? '';
const stepOf = (folder: string): number | undefined => stepNumber(/\/step-(\d+)\/$/.exec(folder)?.[1]);

/**
 * Replication status of the newest checkpoint among the five most recent runs. It shows whether the destination account accepts the copies,
 * even when that account's settings cannot be read. https://docs.aws.amazon.com/AmazonS3/latest/userguide/replication-status.html,
 * 2026-11-23.
 * @throws when the bucket cannot be listed or a record cannot be read
 */
export async function newestCopy(
  s3: S3Client,
  { bucket: Bucket, account: ExpectedBucketOwner }: { bucket: string; account: string },
): Promise<SeenCopy | undefined> {
  const place = { Bucket, ExpectedBucketOwner };
  const teams = await foldersIn(s3, place, 'runs/');
  const runs = (await Promise.all(teams.map((team) => foldersIn(s3, place, team)))).flat();
  const newest = runs.sort((a, b) => launchedAt(b).localeCompare(launchedAt(a))).slice(0, RUNS);
  const records = (await Promise.all(newest.map((run) => newestRecord(s3, place, run)))).flatMap(
    (found) => found ?? [],
  );
  const [last] = records.sort((a, b) => b.at - a.at);
  return last && { key: last.key, status: last.status };
}

interface Place {
  Bucket: string;
  ExpectedBucketOwner: string;
}

async function foldersIn(client: S3Client, place: Place, Prefix: string): Promise<string[]> {
  const pages = paginateListObjectsV2({ client }, { ...place, Prefix, Delimiter: '/' });
  return (await itemsOf(pages, (page) => page.CommonPrefixes)).flatMap(({ Prefix: folder }) => folder ?? []);
}

async function newestRecord(s3: S3Client, place: Place, run: string): Promise<(SeenCopy & { at: number }) | undefined> {
  const steps = (await foldersIn(s3, place, run)).flatMap((folder) => {
    const step = stepOf(folder);
    return step === undefined ? [] : [{ step, folder }];
  });
  for (const { folder } of steps.sort((a, b) => b.step - a.step).slice(0, CHECKPOINTS)) {
    const key = `${folder}COMMITTED.json`;
    const found = await answerOrUndefined(s3.send(new HeadObjectCommand({ ...place, Key: key })), 'NotFound');
    if (found) return { key, status: found.ReplicationStatus, at: found.LastModified?.getTime() ?? 0 };
  }
  return undefined;
}
