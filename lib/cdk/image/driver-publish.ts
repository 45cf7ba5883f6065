import { type CustomResource, Duration } from 'aws-cdk-lib';
import type * as s3 from 'aws-cdk-lib/aws-s3';
import { Construct } from 'constructs';
import { DRIVER_PUBLISH_TYPE } from '../../core/contracts/custom-resources';
import { driverFiles } from '../../shared/local/own-package';
import { generatedAsset } from '../functions/handler-function';
import { customResource } from '../functions/handler-resource';

export interface DriverPublishProps {
  /** Bucket to which the driver is written. */
  readonly artifactBucket: s3.IBucket;
}

/**
 * Publishes the driver and the built-in trainer under `drivers/<hash>/` of the artifact bucket, to which no user can write. Files of
 * earlier releases are kept: a run resumes with the driver with which it started.
 */
export class DriverPublish extends Construct {
  /** `s3://.../drivers/<hash>/`. */
  public readonly uri: string;
  /** First 12 hexadecimal digits of the SHA-256 hash over the driver's files. */
  public readonly hash: string;
  /** The custom resource that writes the files. */
  public readonly resource: CustomResource;

  constructor(scope: Construct, id: string, props: DriverPublishProps) {
    super(scope, id);
    const bucket = props.artifactBucket;
    const archive = driverFiles();
    const asset = generatedAsset(this, 'Archive', 'driver.json', JSON.stringify(archive));
    const key = bucket.encryptionKey;
    this.resource = customResource(this, 'Files', {
      resourceType: DRIVER_PUBLISH_TYPE,
      handler: 'driver-publish',
      description: 'Copies driver and trainer into the artifact bucket',
      timeout: Duration.minutes(2),
      statements: [
        {
          sid: 'ReadAsset',
          actions: ['s3:GetObject'],
          resources: [asset.bucket.arnForObjects(asset.s3ObjectKey)],
        },
        {
          sid: 'WriteDriver',
          actions: ['s3:PutObject'],
          resources: [bucket.arnForObjects('drivers/*')],
          wildcard: 'The files of each release lie under their hash.',
        },
        ...(key ? [{ sid: 'EncryptDriver', actions: ['kms:GenerateDataKey'], resources: [key.keyArn] }] : []),
      ],
      asksForStack: false,
      serviceTimeout: Duration.minutes(5),
      properties: {
        sourceBucket: asset.s3BucketName,
        sourceKey: asset.s3ObjectKey,
        bucket: bucket.bucketName,
        hash: archive.hash,
      },
    });
    this.uri = this.resource.getAttString('Uri');
    this.hash = archive.hash;
  }
}
