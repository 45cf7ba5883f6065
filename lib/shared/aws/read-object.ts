import { GetObjectCommand, type S3Client } from '@aws-sdk/client-s3';
import { bucketAndKey } from '../../core/config/formats/places';

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

/** Largest object that is read as text: that of a checkpoint of thousands of ranks has some MB. */
export const MAX_TEXT_BYTES = 8 * 2 ** 20;

/**
 * Opens an object that a job or a person wrote. Its size is compared before its content is read, so that no object can exhaust the memory of
 * who reads it. Throws `TooLarge` when it has more than `maxBytes`.
 */
export async function openObject(s3: S3Client, place: { Bucket: string; Key: string }, maxBytes = MAX_TEXT_BYTES) {
  const { Body, ContentLength = 0, LastModified: writtenAt } = await s3.send(new GetObjectCommand(place));
  if (!Body) throw new Error('the answer of S3 has no content');
  if (ContentLength > maxBytes) {
    (Body as { destroy?(): void }).destroy?.();
    throw new TooLarge(ContentLength, maxBytes, writtenAt ?? new Date());
  }
  return { Body, writtenAt };
}

/** The text of such an object, and when it was written by S3's clock. */
export async function readObject(s3: S3Client, uri: string, maxBytes: number) {
  const { Body, writtenAt } = await openObject(s3, bucketAndKey(uri), maxBytes);
  if (!writtenAt) throw new Error('the answer of S3 has no LastModified');
  return { text: await Body.transformToString(), writtenAt };
}
