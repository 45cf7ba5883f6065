import { type CustomResource, Duration, Stack } from 'aws-cdk-lib';
import type * as iam from 'aws-cdk-lib/aws-iam';
import type * as kms from 'aws-cdk-lib/aws-kms';
import type * as s3 from 'aws-cdk-lib/aws-s3';
import { Construct } from 'constructs';
import { ADOPT_STORAGE_TYPE } from '../../core/contracts/custom-resources';
import type { ExactStatement } from '../access/statement';
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

/** Properties of `AdoptStorage`. */
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
export class AdoptStorage extends Construct {
  public readonly resource: CustomResource;

  constructor(scope: Construct, id: string, props: AdoptStorageProps) {
    super(scope, id);
    this.resource = customResource(this, 'Adopt', {
      resourceType: ADOPT_STORAGE_TYPE,
      function: {
        handler: 'adopt-storage',
        description: 'Checks and restores what an earlier stack left',
        timeout: Duration.minutes(2),
      },
      statements: statementsOf(Stack.of(this), props),
      asksForStack: true,
      serviceTimeout: Duration.minutes(4),
      properties: {
        buckets: Stack.of(this).toJsonString(
          props.buckets.map(({ bucket, statements, leftoverDays }) => ({
            name: bucket.bucketName,
            statements: statements.map((statement) => statement.toStatementJson()),
            leftoverDays,
          })),
        ),
        keyArn: props.key.keyArn,
        ...(props.tableName && { tableName: props.tableName }),
        ...(props.repositoryName && { repositoryName: props.repositoryName }),
      },
    });
  }
}

function statementsOf(
  { partition, region, account }: Stack,
  { buckets, key, tableName, repositoryName }: AdoptStorageProps,
): ExactStatement[] {
  const arnOf = (service: string, name: string) => `arn:${partition}:${service}:${region}:${account}:${name}`;
  const table = tableName && {
    sid: 'CheckRunTable',
    actions: ['dynamodb:DescribeTable'],
    resources: [arnOf('dynamodb', `table/${tableName}`)],
  };
  const repository = repositoryName && {
    sid: 'CheckRepository',
    actions: ['ecr:DescribeRepositories'],
    resources: [arnOf('ecr', `repository/${repositoryName}`)],
  };
  return [
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
    ...[table, repository].flatMap((statement) => statement || []),
  ];
}
