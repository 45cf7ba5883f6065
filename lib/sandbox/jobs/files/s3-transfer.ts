import { createWriteStream } from 'node:fs';
import { mkdir, open } from 'node:fs/promises';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import {
  DeleteObjectCommand,
  GetObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  type S3Client,
} from '@aws-sdk/client-s3';

/** Bucket and key of an object, or bucket and prefix. */
export interface S3Location {
  bucket: string;
  /** Key or key prefix, without a leading slash. */
  key: string;
}

/** Bucket and key of `s3://bucket/key` (or the https form). */
export function parseS3Uri(uri: string): S3Location {
  const found = /^(?:s3|https):\/\/([^/]+)\/?(.*)$/s.exec(uri);
  if (!found) throw new Error(`S3 address must be s3://bucket/key, got ${uri}`);
  return { bucket: found[1] ?? '', key: found[2] ?? '' };
}

/** Keys below a prefix, in the order in which S3 lists them, without empty folder placeholders. */
export async function listKeys(s3: S3Client, { bucket, key }: S3Location): Promise<string[]> {
  const keys: string[] = [];
  let ContinuationToken: string | undefined;
  do {
    const found = await s3.send(new ListObjectsV2Command({ Bucket: bucket, Prefix: key, ContinuationToken }));
    for (const object of found.Contents ?? []) {
      if (object.Key && !(object.Key.endsWith('/') && object.Size === 0)) keys.push(object.Key);
    }
    ContinuationToken = found.NextContinuationToken;
  } while (ContinuationToken);
  return keys;
}

export async function downloadObject(
  s3: S3Client,
  from: S3Location,
  file: string,
  signal?: AbortSignal,
): Promise<void> {
  await mkdir(path.dirname(file), { recursive: true });
  const request = new GetObjectCommand({ Bucket: from.bucket, Key: from.key });
  const { Body } = await s3.send(request, { abortSignal: signal });
  await pipeline(Body as Readable, createWriteStream(file), { signal });
}

export async function readObject(s3: S3Client, from: S3Location): Promise<string> {
  const { Body } = await s3.send(new GetObjectCommand({ Bucket: from.bucket, Key: from.key }));
  return (await Body?.transformToString()) ?? '';
}

/**
 * Uploads the current content of a file, even if its writer renames, deletes or extends it in the meantime. Fails with ENOENT when it does
 * not exist.
 * @param kmsKeyId key for the object's encryption; default: that of the bucket
 */
export async function uploadFile(s3: S3Client, file: string, to: S3Location, kmsKeyId?: string): Promise<void> {
  const handle = await open(file);
  try {
    const { size } = await handle.stat();
    const Body = size === 0 ? '' : handle.createReadStream({ start: 0, end: size - 1, autoClose: false });
    const encryption = kmsKeyId ? { ServerSideEncryption: 'aws:kms' as const, SSEKMSKeyId: kmsKeyId } : {};
    await s3.send(new PutObjectCommand({ Bucket: to.bucket, Key: to.key, Body, ContentLength: size, ...encryption }));
  } finally {
    await handle.close();
  }
}

/** Deletes an object; a missing object is not an error. */
export async function deleteObject(s3: S3Client, at: S3Location): Promise<void> {
  await s3.send(new DeleteObjectCommand({ Bucket: at.bucket, Key: at.key }));
}

/** Runs `work` over the items, at most `width` at a time. */
export async function inParallel<T>(
  items: readonly T[],
  width: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const queue = items.values();
  const worker = async () => {
    for (const item of queue) await work(item);
  };
  await Promise.all(Array.from({ length: Math.min(width, items.length) }, worker));
}
