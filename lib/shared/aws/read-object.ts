import { GetObjectCommand, type S3Client } from '@aws-sdk/client-s3';
import { bucketAndKey } from '../../core/config/formats/places';

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
