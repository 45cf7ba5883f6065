import { type CustomResource, Duration, Stack } from 'aws-cdk-lib';
import type * as s3 from 'aws-cdk-lib/aws-s3';
import { Construct } from 'constructs';
import { EMPTY_STORAGE_TYPE } from '../../core/contracts/custom-resources';
import type { ExactStatement } from '../access/statement';
import { customResource } from '../functions/handler-resource';

/** Properties of `EmptyStorage`. */
export interface EmptyStorageProps {
  /** Buckets that the same stack creates. */
  readonly buckets: readonly s3.Bucket[];
  /** Whether they are retained: then they are emptied only while the creation of the stack is rolled back. */
  readonly retain: boolean;
}

/**
 * Empties buckets before CloudFormation deletes them, because it cannot delete a bucket that contains objects. Everything that writes to
 * the buckets must depend on it, so that it is called after the last write.
 */
export class EmptyStorage extends Construct {
  public readonly resource: CustomResource;

  constructor(scope: Construct, id: string, props: EmptyStorageProps) {
    super(scope, id);
    this.resource = customResource(this, 'Empty', {
      resourceType: EMPTY_STORAGE_TYPE,
      function: {
        handler: 'empty-storage',
        description: 'Empties buckets that are about to be deleted with their stack',
        timeout: Duration.minutes(14),
        memorySize: 512,
      },
      statements: statementsOf(props),
      asksForStack: true,
      serviceTimeout: Duration.minutes(15),
      properties: {
        bucketNames: Stack.of(this).toJsonString(props.buckets.map(({ bucketName }) => bucketName)),
        when: props.retain ? 'rollback' : 'always',
      },
    });
    // Deleted before the buckets and their policies.
    this.resource.node.addDependency(...props.buckets);
  }
}

function statementsOf({ buckets }: EmptyStorageProps): ExactStatement[] {
  return [
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
  ];
}
