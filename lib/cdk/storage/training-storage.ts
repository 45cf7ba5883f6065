import { Duration, RemovalPolicy, Stack, Tags } from 'aws-cdk-lib';
import * as iam from 'aws-cdk-lib/aws-iam';
import * as kms from 'aws-cdk-lib/aws-kms';
import * as s3 from 'aws-cdk-lib/aws-s3';
import * as ssm from 'aws-cdk-lib/aws-ssm';
import { S3_SERVER_ACCESS_LOGS_USE_BUCKET_POLICY } from 'aws-cdk-lib/cx-api';
import { Construct, type IDependable } from 'constructs';
import {
  type BucketPurpose,
  bucketNameOf,
  LEFTOVER_RULE,
  LEFTOVER_TAG,
  versionDays,
} from '../../core/contracts/storage';
import {
  type AdoptStorageProps,
  adoptStorage,
  checkExistingStorage,
  type ExistingBuckets,
  emptyStorage,
} from './storage-resources';

const INCOMPLETE_UPLOAD_DAYS = 3;
const ACCESS_LOG_DAYS = 365;
const CHECKPOINT_DAYS = 90;
const TLS_VERSION = 1.2;

export interface TrainingStorageProps {
  /** Prefix of names, `slipway-research`; account, Region and purpose are added. */
  readonly prefix: string;
  /** Whether buckets and key are retained when the stack is deleted. @default true */
  readonly retain?: boolean;
  /**
   * Days until objects of uncommitted checkpoints expire; reconcile tags them when their run is over. Committed ones never expire. @default
   * 90
   */
  readonly checkpointExpirationDays?: number;
  /** Whether to adopt buckets and key that an earlier stack retained, instead of creating them. @default false */
  readonly adopt?: boolean;
  /** Other resources that must exist when they are adopted. @default - none */
  readonly adoptBeside?: Pick<AdoptStorageProps, 'tableName' | 'repositoryName'>;
  /** Existing buckets to use. @default - all are created */
  readonly buckets?: ExistingBuckets;
  /** Existing key of the account and Region to use. @default - a key is created */
  readonly kmsKeyArn?: string;
  /** Teams with a key of their own: `own`, or the ARN of an existing key. @default - none */
  readonly teamKeys?: Readonly<Record<string, string>>;
  /** Whether a file system of the stack reads and writes the data bucket, which the policy of an existing key must allow. @default false */
  readonly hasDataRepository?: boolean;
}

type Purpose = Exclude<BucketPurpose, 'access-logs'>;

/**
 * Three buckets (data, checkpoints, artifacts), one bucket for their access logs, and the key that encrypts them: TLS only, not public,
 * versioned. Costs the key (1 USD a month) and the storage.
 *
 * A creation that is rolled back deletes its buckets, emptied of what it wrote itself, so that the deploy can be repeated; a later update
 * or deletion never does (RETAIN_ON_UPDATE_OR_DELETE). Bucket policies are retained with their buckets. Existing buckets and an existing
 * key are checked before anything is created, and neither changed nor deleted.
 */
export class TrainingStorage extends Construct {
  /** Key of the buckets. */
  public readonly key: kms.IKey;
  /** Keys of teams with a key of their own; other teams use `key`. */
  public readonly teamKeys: Readonly<Record<string, kms.IKey>>;
  /** Bucket of data sets. */
  public readonly dataBucket: s3.IBucket;
  /** Bucket of checkpoints. */
  public readonly checkpointBucket: s3.IBucket;
  /** Bucket of code, drivers and results. */
  public readonly artifactBucket: s3.IBucket;
  /** Name of the data bucket as text: the policy of the key cannot refer to the bucket, because the bucket refers to the key. */
  public readonly dataBucketName: string;
  /** Dependency for everything that writes to the buckets. */
  public readonly ready: IDependable;

  private readonly removalPolicy: RemovalPolicy;
  private readonly logBucket?: s3.Bucket;

  constructor(
    scope: Construct,
    id: string,
    private readonly props: TrainingStorageProps,
  ) {
    super(scope, id);
    // Without this flag, access logs would be delivered through ACLs, which these buckets do not have.
    this.node.setContext(S3_SERVER_ACCESS_LOGS_USE_BUCKET_POLICY, true);
    this.removalPolicy = props.retain === false ? RemovalPolicy.DESTROY : RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE;
    this.dataBucketName = this.bucketName('data');
    const { adopt, buckets, kmsKeyArn: keyArn, hasDataRepository } = props;
    const dataRepository = hasDataRepository ? this.dataBucketName : undefined;
    const existing = buckets || keyArn ? checkExistingStorage(this, { buckets, keyArn, dataRepository }) : undefined;
    if (!adopt) this.logBucket = this.makeLogBucket();
    if (keyArn) this.key = kms.Key.fromKeyArn(existing ?? this, 'Key', keyArn);
    else this.key = adopt ? this.adoptKey() : this.makeKey();
    this.teamKeys = Object.fromEntries(
      Object.entries(props.teamKeys ?? {}).map(([team, key]) => [team, this.teamKey(team, key)]),
    );
    this.dataBucket = this.bucket('Data', 'data', []);
    this.checkpointBucket = this.bucket('Checkpoints', 'checkpoints', [this.leftoverRule()]);
    this.artifactBucket = this.bucket('Artifacts', 'artifacts', []);
    this.ready = adopt ? this.adoptBuckets() : this.emptyBuckets();
    const made = this.node.children.filter((child) => child !== existing);
    if (existing) for (const child of made) child.node.addDependency(existing);
  }

  /** The resource that empties buckets is between the buckets and everything that writes to them. */
  private emptyBuckets(): IDependable {
    const all = [this.dataBucket, this.checkpointBucket, this.artifactBucket, this.logBucket];
    const buckets = all.filter((bucket): bucket is s3.Bucket => bucket instanceof s3.Bucket);
    for (const { policy } of buckets) policy?.applyRemovalPolicy(this.removalPolicy);
    return emptyStorage(this, buckets, this.props.retain !== false);
  }

  private adoptBuckets(): IDependable {
    const { checkpointExpirationDays: leftoverDays = CHECKPOINT_DAYS, adoptBeside } = this.props;
    const logs = s3.Bucket.fromBucketName(this, 'AccessLogs', this.bucketName('access-logs'));
    const left = [
      { purpose: 'data' as const, bucket: this.dataBucket },
      { purpose: 'checkpoints' as const, bucket: this.checkpointBucket, leftoverDays },
      { purpose: 'artifacts' as const, bucket: this.artifactBucket },
    ].filter(({ purpose }) => !this.existingName(purpose));
    const delivery = left.map(({ purpose }) => logDelivery(logs, `${purpose}/`, this.bucketName(purpose), this));
    return adoptStorage(this, {
      buckets: [
        ...left.map(({ purpose, ...rest }) => ({ ...rest, statements: tlsOnly(rest.bucket) })),
        { bucket: logs, statements: [...tlsOnly(logs), ...delivery] },
      ],
      key: this.key,
      ...adoptBeside,
    });
  }

  /** Name of an existing bucket; undefined when the stack creates it. */
  private existingName(purpose: BucketPurpose): string | undefined {
    const names: Partial<Record<BucketPurpose, string>> = this.props.buckets ?? {};
    return names[purpose];
  }

  private bucketName(purpose: BucketPurpose): string {
    const { account, region } = Stack.of(this);
    return this.existingName(purpose) ?? bucketNameOf({ prefix: this.props.prefix, account, region }, purpose);
  }

  private bucket(id: string, purpose: Purpose, rules: s3.LifecycleRule[]): s3.IBucket {
    const bucketName = this.bucketName(purpose);
    if (this.props.adopt || this.existingName(purpose))
      return s3.Bucket.fromBucketAttributes(this, id, { bucketName, encryptionKey: this.key });
    return new s3.Bucket(this, id, {
      ...this.privateBucket(),
      bucketName,
      encryption: s3.BucketEncryption.KMS,
      encryptionKey: this.key,
      bucketKeyEnabled: true,
      serverAccessLogsBucket: this.logBucket,
      serverAccessLogsPrefix: `${purpose}/`,
      lifecycleRules: [
        {
          id: 'old-versions',
          noncurrentVersionExpiration: Duration.days(versionDays(purpose)),
          expiredObjectDeleteMarker: true,
          abortIncompleteMultipartUploadAfter: Duration.days(INCOMPLETE_UPLOAD_DAYS),
        },
        ...rules,
      ],
    });
  }

  private privateBucket(): s3.BucketProps {
    return {
      enforceSSL: true,
      minimumTLSVersion: TLS_VERSION,
      blockPublicAccess: s3.BlockPublicAccess.BLOCK_ALL,
      objectOwnership: s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
      versioned: true,
      removalPolicy: this.removalPolicy,
    };
  }

  private leftoverRule(): s3.LifecycleRule {
    return {
      id: LEFTOVER_RULE,
      tagFilters: { [LEFTOVER_TAG.key]: LEFTOVER_TAG.value },
      expiration: Duration.days(this.props.checkpointExpirationDays ?? CHECKPOINT_DAYS),
    };
  }

  /** Server access logs cannot be delivered to a bucket that is encrypted with a customer managed key. */
  private makeLogBucket(): s3.Bucket {
    return new s3.Bucket(this, 'AccessLogs', {
      bucketName: this.bucketName('access-logs'),
      ...this.privateBucket(),
      encryption: s3.BucketEncryption.S3_MANAGED,
      lifecycleRules: [
        {
          id: 'expire',
          expiration: Duration.days(ACCESS_LOG_DAYS),
          noncurrentVersionExpiration: Duration.days(versionDays('access-logs')),
        },
      ],
    });
  }

  private makeKey(): kms.Key {
    const key = new kms.Key(this, 'Key', {
      description: `${this.props.prefix}: training data, checkpoints, run table`,
      enableKeyRotation: true,
      removalPolicy: this.removalPolicy,
    });
    // A later stack of the same name finds the key through this parameter, because a key has no name of its own.
    const parameter = new ssm.StringParameter(this, 'KeyParameter', {
      parameterName: keyParameter(this.props.prefix),
      stringValue: key.keyArn,
      description: 'Key of the buckets that stay when the stack goes',
    });
    parameter.applyRemovalPolicy(this.removalPolicy);
    return key;
  }

  /** It has the default key policy of the CDK: IAM policies decide who may use it, and the roles of other teams may not. */
  private teamKey(team: string, key: string): kms.IKey {
    if (key !== 'own') return kms.Key.fromKeyArn(this, `Key-${team}`, key);
    const made = new kms.Key(this, `Key-${team}`, {
      description: `${this.props.prefix}: data of team ${team}`,
      enableKeyRotation: true,
      removalPolicy: this.removalPolicy,
    });
    Tags.of(made).add('slipway:team', team);
    return made;
  }

  private adoptKey(): kms.IKey {
    const arn = ssm.StringParameter.valueForStringParameter(this, keyParameter(this.props.prefix));
    return kms.Key.fromKeyArn(this, 'Key', arn);
  }
}

/** ARNs of the buckets and their key. */
export const storageArns = ({
  dataBucket,
  checkpointBucket,
  artifactBucket,
  key,
}: Pick<TrainingStorage, 'dataBucket' | 'checkpointBucket' | 'artifactBucket' | 'key'>) => ({
  dataBucketArn: dataBucket.bucketArn,
  checkpointBucketArn: checkpointBucket.bucketArn,
  artifactBucketArn: artifactBucket.bucketArn,
  keyArn: key.keyArn,
});

/** ARNs of the keys of teams with a key of their own. */
export const teamKeyArns = ({ teamKeys = {} }: Partial<Pick<TrainingStorage, 'teamKeys'>>): string[] =>
  Object.values(teamKeys).map(({ keyArn }) => keyArn);

const keyParameter = (prefix: string): string => `/slipway/storage/${prefix}/key`;

/** The statement that the CDK adds to the policy of a TLS-only bucket, for a bucket that it did not create. */
function tlsOnly(bucket: s3.IBucket): iam.PolicyStatement[] {
  const conditions = [
    { Bool: { 'aws:SecureTransport': 'false' } },
    { NumericLessThan: { 's3:TlsVersion': TLS_VERSION } },
  ];
  return conditions.map(
    (condition) =>
      new iam.PolicyStatement({
        effect: iam.Effect.DENY,
        principals: [new iam.AnyPrincipal()],
        actions: ['s3:*'],
        resources: [bucket.bucketArn, bucket.arnForObjects('*')],
        conditions: condition,
      }),
  );
}

/** The statement that the CDK adds to the policy of an access log bucket, for a bucket that it did not create. */
function logDelivery(logs: s3.IBucket, prefix: string, source: string, scope: Construct): iam.PolicyStatement {
  const { account, partition } = Stack.of(scope);
  return new iam.PolicyStatement({
    principals: [new iam.ServicePrincipal('logging.s3.amazonaws.com')],
    actions: ['s3:PutObject'],
    resources: [logs.arnForObjects(`${prefix}*`)],
    conditions: {
      ArnLike: { 'aws:SourceArn': `arn:${partition}:s3:::${source}` },
      StringEquals: { 'aws:SourceAccount': account },
    },
  });
}
