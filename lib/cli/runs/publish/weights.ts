import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CopyObjectCommand,
  CreateMultipartUploadCommand,
  paginateListObjectsV2,
  type S3Client,
  UploadPartCopyCommand,
} from '@aws-sdk/client-s3';
import { eachInTurn } from '../../../aws/pace';
import { calling } from '../../aws-errors';

/** A file of weights where the job left it. */
export interface WeightFile {
  /** Below the folder. */
  name: string;
  bucket: string;
  key: string;
  bytes: number;
}

/** Where weights go, and the key that they are encrypted with. */
export interface Destination {
  bucket: string;
  /** With a slash at its end, or empty. */
  prefix: string;
  /** @default - the bucket's own encryption */
  kmsKeyArn?: string;
}

/** Largest object that S3 copies at once: https://docs.aws.amazon.com/AmazonS3/latest/API/API_CopyObject.html, 2026-11-23. */
const MOST_AT_ONCE = 5 * 1024 ** 3;
/** 10,000 parts at most: https://docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html, 2026-11-23. */
const PART = 512 * 1024 ** 2;
const PARTS_AT_ONCE = 8;

/** Files at `uri`: one archive, or everything below a folder. */
export async function weightFiles(client: S3Client, uri: string): Promise<WeightFile[]> {
  const [, bucket = '', key = ''] = /^s3:\/\/([^/]+)\/(.*)$/.exec(uri) ?? [];
  const folder = key.slice(0, key.lastIndexOf('/') + 1);
  const found: WeightFile[] = [];
  await calling(`listing ${uri}`, async () => {
    for await (const page of paginateListObjectsV2({ client }, { Bucket: bucket, Prefix: key })) {
      for (const { Key = '', Size = 0 } of page.Contents ?? [])
        if (!Key.endsWith('/')) found.push({ name: Key.slice(folder.length), bucket, key: Key, bytes: Size });
    }
  });
  return found;
}

/** Copies one file inside S3, with the rights of the caller. What the source is tagged with is left behind: tags need rights of their own. */
export async function copyWeights(client: S3Client, file: WeightFile, to: Destination): Promise<void> {
  const target = { Bucket: to.bucket, Key: `${to.prefix}${file.name}`, ...encryption(to) };
  const CopySource = `${file.bucket}/${file.key.split('/').map(encodeURIComponent).join('/')}`;
  await calling(`copying s3://${file.bucket}/${file.key} to s3://${target.Bucket}/${target.Key}`, async () => {
    if (file.bytes > MOST_AT_ONCE) await copyInParts(client, file.bytes, CopySource, target);
    else await client.send(new CopyObjectCommand({ ...target, CopySource, TaggingDirective: 'REPLACE' }));
  });
}

/** Header of an upload into a place with a key of its own. */
export const encryption = ({ kmsKeyArn }: Destination) =>
  kmsKeyArn ? ({ ServerSideEncryption: 'aws:kms', SSEKMSKeyId: kmsKeyArn } as const) : {};

async function copyInParts(
  client: S3Client,
  bytes: number,
  CopySource: string,
  target: { Bucket: string; Key: string },
): Promise<void> {
  const { Bucket, Key } = target;
  const { UploadId } = await client.send(new CreateMultipartUploadCommand(target));
  const starts = Array.from({ length: Math.ceil(bytes / PART) }, (_, i) => i * PART);
  try {
    const Parts = await eachInTurn(starts, PARTS_AT_ONCE, async (start) => {
      const PartNumber = start / PART + 1;
      const CopySourceRange = `bytes=${start}-${Math.min(start + PART, bytes) - 1}`;
      const input = { Bucket, Key, UploadId, PartNumber, CopySource, CopySourceRange };
      const { CopyPartResult } = await client.send(new UploadPartCopyCommand(input));
      return { PartNumber, ETag: CopyPartResult?.ETag };
    });
    await client.send(new CompleteMultipartUploadCommand({ Bucket, Key, UploadId, MultipartUpload: { Parts } }));
  } catch (error) {
    // Parts of an upload that was given up cost storage; what stopped the copy is the error to show.
    await client.send(new AbortMultipartUploadCommand({ Bucket, Key, UploadId })).catch(() => undefined);
    throw error;
  }
}
