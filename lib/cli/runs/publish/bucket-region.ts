import { HeadBucketCommand, type S3Client } from '@aws-sdk/client-s3';
import type { Descriptor } from '../../../core/config/descriptor';
import { bucketRegionIn } from '../../../shared/aws/region-in-error';
import { UsageError } from '../../exit';
import type { Destination } from './weights';

/**
 * Weights of a version in the model registry must be in a bucket of its region:
 * https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_ModelPackageContainerDefinition.html, read 2026-11-23. If S3 does not
 * return the region, the service checks it.
 * @throws UsageError for a bucket of another region
 */
export async function requireRegion(client: S3Client, { bucket }: Destination, descriptor: Descriptor): Promise<void> {
  const { dataBucket, checkpointBucket, artifactBucket, region } = descriptor;
  if ([dataBucket, checkpointBucket, artifactBucket].includes(bucket)) return;
  const found = await bucketRegion(client, bucket);
  if (found !== undefined && found !== region)
    throw new UsageError(
      `--to: must be a bucket of ${region} for a version in the registry, got ${bucket} of ${found}; name a bucket there, or leave --registry out`,
    );
}

/** Undefined when S3 does not return it. */
async function bucketRegion(client: S3Client, Bucket: string): Promise<string | undefined> {
  try {
    return (await client.send(new HeadBucketCommand({ Bucket }))).BucketRegion;
  } catch (error) {
    return bucketRegionIn(error);
  }
}
