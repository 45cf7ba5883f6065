import { GetObjectCommand, type S3Client } from '@aws-sdk/client-s3';
import { bucketAndKey } from '../spec/formats/s3-uri';

/** An object as it was read, and when it was written by S3's clock. */
export interface ReadObject {
  text: string;
  writtenAt: Date;
}

/**
 * Reads an object that a job or a person wrote. Its size is compared before its content is read, so that no object can exhaust the memory
 * of a function. Throws when it is larger than `maxBytes`.
 */
export async function readObject(s3: S3Client, uri: string, maxBytes: number): Promise<ReadObject> {
  const { Body, ContentLength = 0, LastModified } = await s3.send(new GetObjectCommand(bucketAndKey(uri)));
  if (!Body || !LastModified) throw new Error('the answer has no body or no time');
  if (ContentLength > maxBytes) {
    (Body as { destroy?(): void }).destroy?.();
    throw new Error(`it has ${ContentLength} bytes, more than ${maxBytes}`);
  }
  return { text: await Body.transformToString(), writtenAt: LastModified };
}
