import { createWriteStream } from 'node:fs';
import { mkdir, open } from 'node:fs/promises';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { GetObjectCommand, PutObjectCommand, type S3Client } from '@aws-sdk/client-s3';
import type { S3Place } from '../../../core/config/formats/places';

/** Bucket and key of `s3://bucket/key` (or the https form). */
export function parseS3Uri(uri: string): S3Place {
  const found = /^(?:s3|https):\/\/([^/]+)\/?(.*)$/s.exec(uri);
  if (!found) throw new Error(`S3 address must be s3://bucket/key, got ${uri}`);
  return { bucket: found[1] ?? '', key: found[2] ?? '' };
}

export async function downloadObject(s3: S3Client, from: S3Place, file: string, signal?: AbortSignal): Promise<void> {
  await mkdir(path.dirname(file), { recursive: true });
  const request = new GetObjectCommand({ Bucket: from.bucket, Key: from.key });
  const { Body } = await s3.send(request, { abortSignal: signal });
  await pipeline(Body as Readable, createWriteStream(file), { signal });
}

export async function readObject(s3: S3Client, from: S3Place): Promise<string> {
  const { Body } = await s3.send(new GetObjectCommand({ Bucket: from.bucket, Key: from.key }));
  return (await Body?.transformToString()) ?? '';
}

/**
 * Uploads the current content of a file, even if its writer renames, deletes or extends it in the meantime. Fails with ENOENT when it does
 * not exist.
 * @param kmsKeyId key for the object's encryption; default: that of the bucket
 */
export async function uploadFile(s3: S3Client, file: string, to: S3Place, kmsKeyId?: string): Promise<void> {
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
