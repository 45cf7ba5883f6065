import { Duration, Stack } from 'aws-cdk-lib';
import type * as iam from 'aws-cdk-lib/aws-iam';
import type * as kms from 'aws-cdk-lib/aws-kms';
import type * as s3 from 'aws-cdk-lib/aws-s3';
import { Construct } from 'constructs';
import { ADOPT_STORAGE_TYPE, EMPTY_STORAGE_TYPE, EXISTING_STORAGE_TYPE } from '../../core/contracts/custom-resources';
import { arnOf } from '../../core/contracts/names';

import { customResource } from '../functions/handler-resource';

/** A bucket that an earlier stack retained, with the statements that its policy needs. */
export interface BucketToAdopt {
  /** The bucket. */
  readonly bucket: s3.IBucket;
  /** Statements that its policy must contain. */
  readonly statements: readonly iam.PolicyStatement[];
  /** Days until uncommitted checkpoints expire. @default - no such rule */
  readonly leftoverDays?: number;
}

export interface AdoptStorageProps {
  /** Buckets that an earlier stack retained. */
  readonly buckets: readonly BucketToAdopt[];
  /** Key that an earlier stack retained. */
  readonly key: kms.IKey;
  /** Table that an earlier stack retained. @default - none */
  readonly tableName?: string;
  /** Repository that an earlier stack retained. @default - none */
  readonly repositoryName?: string;
}

/**
 * Checks that all resources that an earlier stack retained still exist, together and before anything else is created, and restores the
 * bucket policies that a deletion removed.
 */
export function adoptStorage(
  parent: Construct,
  { buckets, key, tableName, repositoryName }: AdoptStorageProps,
): Construct {
  const scope = new Construct(parent, 'Adopt');
  const stack = Stack.of(scope);
  const table = { sid: 'CheckRunTable', actions: ['dynamodb:DescribeTable'] };
  const repository = { sid: 'CheckRepository', actions: ['ecr:DescribeRepositories'] };
  customResource(scope, 'Adopt', {
    resourceType: ADOPT_STORAGE_TYPE,
    handler: 'adopt-storage',
    description: 'Checks and restores what an earlier stack left',
    timeout: Duration.minutes(2),
    statements: [
      {
        sid: 'CheckAndRestoreBuckets',
        actions: [
          's3:ListBucket',
          's3:GetBucketPolicy',
          's3:PutBucketPolicy',
          's3:GetLifecycleConfiguration',
          's3:PutLifecycleConfiguration',
        ],
        resources: buckets.map(({ bucket }) => bucket.bucketArn),
      },
      { sid: 'CheckKey', actions: ['kms:DescribeKey'], resources: [key.keyArn] },
      ...(tableName ? [{ ...table, resources: [arnOf(stack, 'dynamodb', `table/${tableName}`)] }] : []),
      ...(repositoryName ? [{ ...repository, resources: [arnOf(stack, 'ecr', `repository/${repositoryName}`)] }] : []),
    ],
    serviceTimeout: Duration.minutes(4),
    properties: {
      buckets: stack.toJsonString(
        buckets.map(({ bucket, statements, leftoverDays }) => ({
          name: bucket.bucketName,
          statements: statements.map((statement) => statement.toStatementJson()),
          leftoverDays,
        })),
      ),
      keyArn: key.keyArn,
      ...(tableName && { tableName }),
      ...(repositoryName && { repositoryName }),
    },
  });
  return scope;
}

/**
 * Empties buckets before CloudFormation deletes them, because it cannot delete a bucket that contains objects. Everything that writes to
 * the buckets must depend on it, so that it is called after the last write.
 * @param isRetained whether the buckets are retained: then they are emptied only while the creation of the stack is rolled back
 */
export function emptyStorage(parent: Construct, buckets: readonly s3.Bucket[], isRetained: boolean): Construct {
  const scope = new Construct(parent, 'Empty');
  const emptied = customResource(scope, 'Empty', {
    resourceType: EMPTY_STORAGE_TYPE,
    handler: 'empty-storage',
    description: 'Empties buckets that are about to be deleted with their stack',
    timeout: Duration.minutes(14),
    memorySize: 512,
    statements: [
      {
        sid: 'ListAndCloseBuckets',
        actions: ['s3:ListBucketVersions', 's3:GetBucketPolicy', 's3:PutBucketPolicy'],
        resources: buckets.map(({ bucketArn }) => bucketArn),
      },
      {
        sid: 'EmptyBuckets',
        actions: ['s3:DeleteObject', 's3:DeleteObjectVersion'],
        resources: buckets.map((bucket) => bucket.arnForObjects('*')),
        wildcard: 'Every object goes, when the bucket goes.',
      },
    ],
    serviceTimeout: Duration.minutes(15),
    properties: {
      bucketNames: Stack.of(scope).toJsonString(buckets.map(({ bucketName }) => bucketName)),
      when: isRetained ? 'rollback' : 'always',
    },
  });
  // Deleted before the buckets and their policies.
  emptied.node.addDependency(...buckets);
  return scope;
}

/** Names of existing buckets by purpose. */
export interface ExistingBuckets {
  /** Bucket of the data. @default - created by the stack */
  readonly data?: string;
  /** Bucket of the checkpoints. @default - created by the stack */
  readonly checkpoints?: string;
}

interface ExistingStorage {
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
export function checkExistingStorage(
  parent: Construct,
  { buckets = {}, keyArn, dataRepository }: ExistingStorage,
): Construct {
  const scope = new Construct(parent, 'Existing');
  const { partition, region, account, urlSuffix } = Stack.of(scope);
  const names = [buckets.data, buckets.checkpoints].flatMap((name) => name ?? []);
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
    resources: names.map((name) => `arn:${partition}:s3:::${name}`),
  };
  const ofKey = { sid: 'CheckExistingKey', actions: ['kms:DescribeKey', 'kms:GetKeyPolicy'] };
  customResource(scope, 'Check', {
    resourceType: EXISTING_STORAGE_TYPE,
    handler: 'existing-storage',
    description: 'Checks existing buckets and keys',
    timeout: Duration.minutes(2),
    statements: [...(names.length > 0 ? [ofBuckets] : []), ...(keyArn ? [{ ...ofKey, resources: [keyArn] }] : [])],
    serviceTimeout: Duration.minutes(4),
    properties: {
      ...{ partition, region, account, urlSuffix },
      buckets: JSON.stringify(buckets),
      ...(keyArn && { keyArn }),
      ...(keyArn && dataRepository && { dataRepository }),
    },
  });
  return scope;
}
