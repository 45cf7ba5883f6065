import { Duration, Stack } from 'aws-cdk-lib';
import * as kms from 'aws-cdk-lib/aws-kms';
import { Construct } from 'constructs';
import { EXISTING_STORAGE_TYPE } from '../../core/contracts/custom-resources';
import type { ExactStatement } from '../access/statement';
import { customResource } from '../functions/handler-resource';

/** Names of existing buckets by purpose. */
export interface ExistingBuckets {
  /** Bucket of the data. @default - created by the stack */
  readonly data?: string;
  /** Bucket of the checkpoints. @default - created by the stack */
  readonly checkpoints?: string;
}

/** Properties of `ExistingStorage`. */
export interface ExistingStorageProps {
  /** @default - the stack creates all buckets */
  readonly buckets?: ExistingBuckets;
  /** Existing key of the account and Region. @default - created by the stack */
  readonly keyArn?: string;
  /** Name of the data bucket, if a file system of the stack reads and writes it with the key. @default - none */
  readonly dataRepository?: string;
}

/**
 * The check of existing buckets and of an existing key, which CloudFormation neither changes nor deletes. A custom resource checks them
 * first (Region, default encryption, policies, public access) and fails the deploy with every statement that is missing in their policies.
 * A deploy checks again when one of the names has changed; `slipway preflight` and `slipway drift` can check at any time.
 */
export class ExistingStorage extends Construct {
  /** The existing key. @default - created by the stack */
  public readonly key?: kms.IKey;

  constructor(scope: Construct, id: string, props: ExistingStorageProps) {
    super(scope, id);
    const { buckets = {}, keyArn, dataRepository } = props;
    const { partition, region, account, urlSuffix } = Stack.of(this);
    if (keyArn) this.key = kms.Key.fromKeyArn(this, 'Key', keyArn);
    customResource(this, 'Check', {
      resourceType: EXISTING_STORAGE_TYPE,
      function: {
        handler: 'existing-storage',
        description: 'Checks existing buckets and keys',
        timeout: Duration.minutes(2),
      },
      statements: statementsOf(props, partition),
      asksForStack: true,
      serviceTimeout: Duration.minutes(4),
      properties: {
        ...{ partition, region, account, urlSuffix },
        buckets: JSON.stringify(buckets),
        ...(keyArn && { keyArn }),
        ...(keyArn && dataRepository && { dataRepository }),
      },
    });
  }
}

function statementsOf({ buckets = {}, keyArn }: ExistingStorageProps, partition: string): ExactStatement[] {
  const ofBuckets = {
    sid: 'CheckExistingBuckets',
    actions: [
      's3:ListBucket',
      's3:GetEncryptionConfiguration',
      's3:GetBucketPolicy',
      's3:GetBucketPublicAccessBlock',
      's3:GetBucketVersioning',
      's3:GetLifecycleConfiguration',
    ],
    resources: [buckets.data, buckets.checkpoints].flatMap((name) => (name ? [`arn:${partition}:s3:::${name}`] : [])),
  };
  const actions = ['kms:DescribeKey', 'kms:GetKeyPolicy'];
  const ofKey = keyArn ? [{ sid: 'CheckExistingKey', actions, resources: [keyArn] }] : [];
  return [...(ofBuckets.resources.length > 0 ? [ofBuckets] : []), ...ofKey];
}
