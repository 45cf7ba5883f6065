import {
  AbortMultipartUploadCommand,
  type CompletedPart,
  CompleteMultipartUploadCommand,
  CopyObjectCommand,
  CreateMultipartUploadCommand,
  type S3Client,
  UploadPartCopyCommand,
} from '@aws-sdk/client-s3';
import { parseS3Uri } from '../../../core/config/formats/places';
import { eachInTurn } from '../../../shared/aws/pace';
import { type ListedObject, objectsBelow } from '../../../shared/aws/pages';
import { calling } from '../../aws-errors';

/** A file of weights in the output of the job. */
export interface WeightFile {
  /** Relative to the folder. */
  name: string;
  bucket: string;
  key: string;
  bytes: number;
}

/** Destination of the weights, and the key with which they are encrypted. */
export interface Destination {
  bucket: string;
  /** With a trailing slash, or empty. */
  prefix: string;
  /** @default - the bucket's own encryption */
  kmsKeyArn?: string;
}

/** Largest object that S3 copies in one request: https://docs.aws.amazon.com/AmazonS3/latest/API/API_CopyObject.html, 2026-11-23. */
const MAX_AT_ONCE = 5 * 1024 ** 3;
/** At most 10,000 parts: https://docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html, 2026-11-23. */
const PART = 512 * 1024 ** 2;
const PARTS_AT_ONCE = 8;

/**
 * Files at `uri`: one archive, or everything below a folder. SageMaker returns the folder of uncompressed weights with or without a
 * trailing slash: https://github.com/aws/sagemaker-python-sdk/pull/4005, read 2026-11-23.
 */
export async function weightFiles(client: S3Client, uri: string): Promise<WeightFile[]> {
  const { bucket, key } = parseS3Uri(uri);
  const isFolder = !key.endsWith('.tar.gz');
  const Prefix = isFolder && !key.endsWith('/') ? `${key}/` : key;
  const start = Prefix.lastIndexOf('/') + 1;
  const found = await listing(client, bucket, Prefix);
  return found
    .filter((object) => isFolder || object.key === key)
    .map((object) => ({ ...object, bucket, name: object.key.slice(start) }));
}

/** Objects with this key prefix, without empty folder placeholders. */
export const listing = (client: S3Client, bucket: string, prefix: string): Promise<ListedObject[]> =>
  calling(`listing s3://${bucket}/${prefix}`, () => objectsBelow(client, bucket, prefix));

/**
 * Copies one file inside S3, with the caller's permissions. Tags of the source are not copied, because tags need additional permissions.
 * `signal` ends a multipart copy, which aborts its upload and throws.
 */
export async function copyWeights(
  client: S3Client,
  file: WeightFile,
  to: Destination,
  signal: AbortSignal,
): Promise<void> {
  const target = { Bucket: to.bucket, Key: `${to.prefix}${file.name}`, ...encryption(to) };
  const CopySource = `${file.bucket}/${file.key.split('/').map(encodeURIComponent).join('/')}`;
  await calling(`copying s3://${file.bucket}/${file.key} to s3://${target.Bucket}/${target.Key}`, async () => {
    if (file.bytes > MAX_AT_ONCE) await copyInParts(client, { bytes: file.bytes, CopySource }, target, signal);
    else await client.send(new CopyObjectCommand({ ...target, CopySource, TaggingDirective: 'REPLACE' }));
  });
}

/** Headers of an upload to a destination with its own key. */
export const encryption = ({ kmsKeyArn }: Destination) =>
  kmsKeyArn ? ({ ServerSideEncryption: 'aws:kms', SSEKMSKeyId: kmsKeyArn } as const) : {};

interface Source {
  bytes: number;
  CopySource: string;
}

async function copyInParts(
  client: S3Client,
  source: Source,
  target: { Bucket: string; Key: string },
  signal: AbortSignal,
): Promise<void> {
  const { Bucket, Key } = target;
  const { UploadId } = await client.send(new CreateMultipartUploadCommand(target));
  const upload = { Bucket, Key, UploadId };
  try {
    const Parts = await copyParts(client, source, upload, signal);
    await client.send(new CompleteMultipartUploadCommand({ ...upload, MultipartUpload: { Parts } }));
  } catch (error) {
    await client.send(new AbortMultipartUploadCommand(upload)).catch(({ message }: Error) => {
      (error as Error).message +=
        `; its incomplete upload ${UploadId} was not aborted (${message}) and costs storage until it is`;
    });
    throw error;
  }
}

/**
 * Copies the parts. After a failure no new part is started, and those in progress are awaited: a part that arrives after its upload was
 * aborted stays and costs storage (https://docs.aws.amazon.com/AmazonS3/latest/API/API_AbortMultipartUpload.html, 2026-11-23).
 */
async function copyParts(
  client: S3Client,
  { bytes, CopySource }: Source,
  upload: { Bucket: string; Key: string; UploadId: string | undefined },
  signal: AbortSignal,
): Promise<CompletedPart[]> {
  const starts = Array.from({ length: Math.ceil(bytes / PART) }, (_, i) => i * PART);
  const parts = await eachInTurn(starts, PARTS_AT_ONCE, async (start) => {
    signal.throwIfAborted();
    const PartNumber = start / PART + 1;
    const CopySourceRange = `bytes=${start}-${Math.min(start + PART, bytes) - 1}`;
    const { CopyPartResult } = await client.send(
      new UploadPartCopyCommand({ ...upload, PartNumber, CopySource, CopySourceRange }),
    );
    return { PartNumber, ETag: CopyPartResult?.ETag };
  });
  signal.throwIfAborted();
  return parts;
}
