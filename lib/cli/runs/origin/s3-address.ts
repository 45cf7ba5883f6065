import { GetObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { calling } from '../../aws-errors';

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
export const clientForAddresses = (region: string): S3Client => new S3Client({ region, followRegionRedirects: true });

/** Text of an object; undefined when it does not exist. Throws a ServiceError when it may not be read. */
export async function textIn(client: S3Client, Bucket: string, Key: string): Promise<string | undefined> {
  return calling(`reading s3://${Bucket}/${Key}`, async () => {
    try {
      const { Body } = await client.send(new GetObjectCommand({ Bucket, Key }));
      return await Body?.transformToString();
    } catch (error) {
      if ((error as Error).name === 'NoSuchKey') return undefined;
      throw error;
    }
  });
}
