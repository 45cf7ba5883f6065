import { Stack } from 'aws-cdk-lib';
import * as iam from 'aws-cdk-lib/aws-iam';
import * as kms from 'aws-cdk-lib/aws-kms';
import * as s3 from 'aws-cdk-lib/aws-s3';
import { Construct, type IConstruct } from 'constructs';
import { REGIONS } from '../../core/catalog/regions';
import type { EnvironmentSpec } from '../../core/config/environment-file';
import { allow, type ExactStatement } from '../access/statement';

/** Destination of the checkpoint copies. */
export interface ReplicaPlace {
  /** Region of the copies. */
  readonly region: string;
  /** Key of that region which encrypts the copies. */
  readonly kmsKeyArn: string;
  /**
   * Existing bucket in that region and in this account. @default - the checkpoint bucket of the environment with the same name in that
   * region
   */
  readonly bucket?: string;
}

/** Properties of `CheckpointReplication`. */
export interface CheckpointReplicationProps {
  /** Name of the source bucket: its policy cannot refer to the bucket, because the bucket refers to the role. */
  readonly sourceBucket: string;
  /** Key that encrypts it. */
  readonly sourceKey: kms.IKey;
  /** Name of the bucket of the copies. */
  readonly targetBucket: string;
  /** Region and key of the copies. */
  readonly to: ReplicaPlace;
}

/** Prefix that is replicated: checkpoints, their records and heartbeats. */
const PREFIX = 'runs/';

/**
 * The role that S3 assumes to replicate checkpoints to another Region, and the replication rule for the bucket: every new version below
 * `runs/`, its tags, and delete markers. Existing objects are not copied, and objects that lifecycle rules or the removal of a version
 * delete in the source stay in the destination until the rules of that bucket delete them. Costs the traffic between Regions and the
 * storage of the copies. https://docs.aws.amazon.com/AmazonS3/latest/userguide/replication-what-is-isnot-replicated.html,
 * https://docs.aws.amazon.com/AmazonS3/latest/userguide/replication-config-for-kms-objects.html, 2026-11-23.
 */
export class CheckpointReplication extends Construct {
  /** Role that S3 assumes. */
  public readonly role: iam.Role;
  /** The rules for the source bucket. */
  public readonly rules: s3.ReplicationRule[];
  /** Bucket of the copies. */
  public readonly targetBucketArn: string;
  /** Key of the copies. */
  public readonly targetKeyArn: string;

  constructor(scope: Construct, id: string, props: CheckpointReplicationProps) {
    super(scope, id);
    const { to, targetBucket } = props;
    this.role = new iam.Role(this, 'Role', {
      assumedBy: new iam.ServicePrincipal('s3.amazonaws.com'),
      description: `Copies checkpoints to ${to.region}`,
    });
    this.targetBucketArn = `arn:${Stack.of(this).partition}:s3:::${targetBucket}`;
    this.targetKeyArn = to.kmsKeyArn;
    for (const statement of this.statements(props)) allow(this.role, statement);
    this.rules = [
      {
        id: 'checkpoints',
        destination: s3.Bucket.fromBucketName(this, 'Target', targetBucket),
        kmsKey: kms.Key.fromKeyArn(this, 'TargetKey', to.kmsKeyArn),
        sseKmsEncryptedObjects: true,
        deleteMarkerReplication: true,
        filter: { prefix: PREFIX },
        priority: 1,
      },
    ];
  }

  private statements({ sourceBucket, sourceKey, targetBucket, to }: CheckpointReplicationProps): ExactStatement[] {
    const { partition, region } = Stack.of(this);
    const throughS3 = (of: string) => ({
      StringEquals: { 'kms:ViaService': `s3.${of}.${REGIONS[of]?.domain ?? 'amazonaws.com'}` },
    });
    const [source, target] = [sourceBucket, targetBucket].map((name) => `arn:${partition}:s3:::${name}`);
    return [
      {
        sid: 'ReadRuleAndNames',
        actions: ['s3:GetReplicationConfiguration', 's3:ListBucket'],
        resources: [source ?? ''],
      },
      {
        sid: 'ReadCheckpoints',
        actions: ['s3:GetObjectVersionAcl', 's3:GetObjectVersionForReplication', 's3:GetObjectVersionTagging'],
        resources: [`${source}/${PREFIX}*`],
        wildcard: 'The checkpoints of all runs.',
      },
      {
        sid: 'WriteCopies',
        actions: ['s3:ReplicateDelete', 's3:ReplicateObject', 's3:ReplicateTags'],
        resources: [`${target}/${PREFIX}*`],
        wildcard: 'The copies of the checkpoints of all runs.',
      },
      { sid: 'ReadWithKey', actions: ['kms:Decrypt'], resources: [sourceKey.keyArn], conditions: throughS3(region) },
      // The documentation of S3 requires kms:Encrypt; with an S3 Bucket Key, which the target has, the CDK grants kms:GenerateDataKey too.
      {
        sid: 'WriteWithKey',
        actions: ['kms:Encrypt', 'kms:GenerateDataKey'],
        resources: [to.kmsKeyArn],
        conditions: throughS3(to.region),
      },
    ];
  }
}

/** The stack of an environment in a Region, with the inputs for the order of deploys. */
interface PlacedStack {
  readonly stack: { readonly storage: IConstruct };
  readonly spec: Pick<EnvironmentSpec, 'name' | 'region'> & {
    readonly storage: Pick<EnvironmentSpec['storage'], 'replicateCheckpoints'>;
  };
}

/**
 * Makes each stack depend on the stack that owns the bucket for its checkpoint copies, so that it is deployed after and destroyed before
 * it: S3 rejects a replication rule for a bucket that does not exist. Regions that replicate to each other cannot depend on each other.
 * https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketReplication.html, 2026-11-23.
 */
export function orderReplicas(placed: readonly PlacedStack[]): void {
  for (const one of placed) {
    const target = targetOf(one, placed);
    // A dependency between constructs of two stacks, which the CDK turns into one between the stacks.
    if (target && !leadsTo(target, one, placed)) one.stack.storage.node.addDependency(target.stack.storage);
  }
}

/** Undefined when nothing is replicated, or when none of the stacks creates the destination. */
function targetOf({ spec }: PlacedStack, placed: readonly PlacedStack[]): PlacedStack | undefined {
  const { name, storage } = spec;
  const to = storage.replicateCheckpoints;
  if (!to || to.bucket !== undefined) return undefined;
  return placed.find((other) => other.spec.name === name && other.spec.region === to.region);
}

function leadsTo(from: PlacedStack, end: PlacedStack, placed: readonly PlacedStack[]): boolean {
  const seen = new Set<PlacedStack>();
  for (let next: PlacedStack | undefined = from; next && !seen.has(next); next = targetOf(next, placed)) {
    if (next === end) return true;
    seen.add(next);
  }
  return false;
}
