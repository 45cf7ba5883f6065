import {
  GetBucketEncryptionCommand,
  GetBucketLifecycleConfigurationCommand,
  GetBucketPolicyCommand,
  GetBucketVersioningCommand,
  GetPublicAccessBlockCommand,
  HeadBucketCommand,
  type S3Client,
  S3ServiceException,
} from '@aws-sdk/client-s3';
import { type Issue, type IssueText, issue } from '../../core/config/issue';
import { LEFTOVER_TAG } from '../../core/contracts/storage';
import { answerOrUndefined, bucketRegionIn } from './answers';
import { conditionTests, deniesRoles, isOnlyPlainHttp, NETWORK, refusesPlainUploads, USER_ID } from './bucket-denials';
import { awsPrincipals, includesAction, includesResource, type PolicyStatement, statementsIn } from './policy-document';

/** An existing bucket that an environment uses, and its required settings. */
export interface ExistingBucket {
  name: string;
  purpose: 'data' | 'checkpoints';
  partition: string;
  region: string;
  /** Account that must own it; undefined = not known. */
  account?: string;
  /** The key that the environment's roles may use; undefined = one that the stack creates. */
  keyArn?: string;
}

/** Settings of a bucket. Reading them requires `s3:GetEncryptionConfiguration` and similar permissions. */
interface BucketSettings {
  /** Algorithm and key of the default encryption; undefined = SSE-S3. */
  keyId?: string;
  isEncryptedWithKms: boolean;
  statements: PolicyStatement[];
  isPublicAccessBlocked: boolean;
  isVersioned: boolean;
  expiresLeftovers: boolean;
}

/**
 * Checks an existing bucket: Region, default encryption, a policy that requires TLS, and public access (errors), and versioning and
 * expiration of leftovers (warnings). The message contains a missing policy statement. Throws when a setting cannot be read.
 */
export async function existingBucketIssues(s3: S3Client, bucket: ExistingBucket): Promise<Issue[]> {
  const problems = await problemsOf(s3, bucket);
  return problems.map(({ level, ...text }) =>
    issue('preflight/bucket', level, `storage.buckets.${bucket.purpose}`, text),
  );
}

/** An issue of a bucket, which names its option. */
type Problem = Pick<Issue, 'level'> & IssueText;

const error = (must: string, got: string, fix: string): Problem => ({ level: 'error', must, got, fix });
const warning = (must: string, got: string, fix: string): Problem => ({ level: 'warning', must, got, fix });

async function problemsOf(s3: S3Client, bucket: ExistingBucket): Promise<Problem[]> {
  const { name, region } = bucket;
  const found = await regionOf(s3, name);
  if (found === undefined)
    return [error('must be a bucket that exists', name, 'create it, correct the name, or leave the option out')];
  if (found !== region)
    return [error(`must be a bucket in ${region}`, `${name} in ${found}`, 'use a bucket in that region')];
  const settings = await read(s3, bucket);
  return CHECKS.flatMap((check) => check(settings, bucket) ?? []);
}

/** Region of a bucket; undefined when the bucket does not exist. */
async function regionOf(s3: S3Client, Bucket: string): Promise<string | undefined> {
  const own = await s3.config.region();
  try {
    return (await s3.send(new HeadBucketCommand({ Bucket }))).BucketRegion ?? own;
  } catch (cause) {
    if (!(cause instanceof S3ServiceException)) throw cause;
    if (cause.$metadata.httpStatusCode === 404 || ['NotFound', 'NoSuchBucket'].includes(cause.name)) return undefined;
    const region = bucketRegionIn(cause);
    if (region === undefined || region === own) throw cause;
    return region;
  }
}

async function read(s3: S3Client, { name: Bucket, account }: ExistingBucket): Promise<BucketSettings> {
  const requested = { Bucket, ...(account && { ExpectedBucketOwner: account }) };
  const [encryption, policy, access, versioning, lifecycle] = await Promise.all([
    answerOrUndefined(
      s3.send(new GetBucketEncryptionCommand(requested)),
      'ServerSideEncryptionConfigurationNotFoundError',
    ),
    answerOrUndefined(s3.send(new GetBucketPolicyCommand(requested)), 'NoSuchBucketPolicy'),
    answerOrUndefined(s3.send(new GetPublicAccessBlockCommand(requested)), 'NoSuchPublicAccessBlockConfiguration'),
    s3.send(new GetBucketVersioningCommand(requested)),
    answerOrUndefined(s3.send(new GetBucketLifecycleConfigurationCommand(requested)), 'NoSuchLifecycleConfiguration'),
  ]);
  const applied = encryption?.ServerSideEncryptionConfiguration?.Rules?.[0]?.ApplyServerSideEncryptionByDefault;
  const block = access?.PublicAccessBlockConfiguration;
  return {
    keyId: applied?.KMSMasterKeyID,
    isEncryptedWithKms: applied?.SSEAlgorithm?.startsWith('aws:kms') ?? false,
    statements: statementsIn(policy?.Policy),
    isPublicAccessBlocked: Boolean(
      block?.BlockPublicAcls && block.BlockPublicPolicy && block.IgnorePublicAcls && block.RestrictPublicBuckets,
    ),
    isVersioned: versioning.Status === 'Enabled',
    expiresLeftovers: (lifecycle?.Rules ?? []).some(
      ({ Status, Filter, Expiration }) =>
        Status === 'Enabled' &&
        Expiration?.Days !== undefined &&
        Filter?.Tag?.Key === LEFTOVER_TAG.key &&
        Filter.Tag.Value === LEFTOVER_TAG.value,
    ),
  };
}

/** What is wrong with one setting; undefined when it is right. */
type Check = (settings: BucketSettings, bucket: ExistingBucket) => Problem | undefined;

/** The roles could not read objects encrypted with a key that they are not allowed to use; keys managed by S3 need no permission. */
const encryptionProblem: Check = ({ isEncryptedWithKms, keyId }, { keyArn, name }) => {
  const isManagedByS3 = !isEncryptedWithKms || keyId === undefined || /alias\/aws\/s3$/.test(keyId);
  if (isManagedByS3)
    return warning(
      "should encrypt new objects with the environment's key",
      `${name} with ${isEncryptedWithKms ? 'the key aws/s3' : 'SSE-S3'}`,
      `set the default encryption of the bucket to aws:kms with ${keyArn ?? 'a key of your own, and set storage.kmsKeyArn to it'}`,
    );
  if (keyArn !== undefined && (keyArn === keyId || keyArn.endsWith(`:key/${keyId}`))) return undefined;
  if (keyArn !== undefined && /(^|:)alias\//.test(keyId))
    return warning(
      `must encrypt new objects with ${keyArn}`,
      `${name} with ${keyId}`,
      'check that the alias refers to that key',
    );
  return error(
    `${name} must encrypt new objects with the key of storage.kmsKeyArn, the only one that the environment's roles may use`,
    keyId,
    keyArn === undefined ? `write kmsKeyArn: ${keyId}` : `change the bucket's default encryption, or the option`,
  );
};

const uploadProblem: Check = ({ statements }, bucket) => {
  const refusal = statements.find((statement) => refusesPlainUploads(statement, bucket));
  return (
    refusal &&
    error(
      'must accept uploads that leave encryption and ACL to the bucket, as those of jobs do',
      `the statement ${refusal.Sid ?? JSON.stringify(refusal)} of ${bucket.name}, which denies them`,
      "remove it from the policy: the bucket's default encryption and ownership apply to every object; or use another bucket",
    )
  );
};

const tlsProblem: Check = ({ statements }, { partition, name }) => {
  const Resource = [`arn:${partition}:s3:::${name}`, `arn:${partition}:s3:::${name}/*`];
  const denials = statements.filter(
    (statement) =>
      statement.Effect === 'Deny' &&
      awsPrincipals(statement).includes('*') &&
      includesAction(statement, 's3:*') &&
      isOnlyPlainHttp(statement),
  );
  if (Resource.every((resource) => denials.some((one) => includesResource(one, resource)))) return undefined;
  const missing = {
    Sid: 'DenyInsecureTransport',
    Effect: 'Deny',
    Principal: '*',
    Action: 's3:*',
    Resource,
    Condition: { Bool: { 'aws:SecureTransport': 'false' } },
  };
  const fix = `add the statement ${JSON.stringify(missing)} to its policy`;
  return error(
    'must have a policy that denies requests without TLS',
    `no such statement in the policy of ${name}`,
    fix,
  );
};

/**
 * Functions, which are in no network, read the checkpoints; data is read by jobs, which may be in it, and by the command line. Whether
 * exceptions include the environment's roles, whose unique ids are not known before they exist, only a job can show.
 */
const denialProblem: Check = ({ statements }, bucket) => {
  const refusal = statements.find((statement) => deniesRoles(statement, bucket));
  if (!refusal) return undefined;
  const tests = conditionTests(refusal);
  const isOfNetwork = tests.some(({ key }) => NETWORK.test(key));
  const hasExceptions = refusal.NotPrincipal !== undefined || tests.some(({ key }) => USER_ID.test(key));
  return (bucket.purpose === 'checkpoints' && !hasExceptions ? error : warning)(
    isOfNetwork
      ? 'must accept requests from outside a network, as those of functions and the command line'
      : "must accept requests of the environment's roles",
    `the statement ${refusal.Sid ?? JSON.stringify(refusal)} of ${bucket.name}, which denies them`,
    'exempt the roles of the environment in it with ArnNotLike on aws:PrincipalArn, or use another bucket',
  );
};

const publicAccessProblem: Check = ({ isPublicAccessBlocked }, { name }) => {
  const settings = ['BlockPublicAcls', 'IgnorePublicAcls', 'BlockPublicPolicy', 'RestrictPublicBuckets'];
  const fix = `run aws s3api put-public-access-block --bucket ${name} --public-access-block-configuration ${settings.map((s) => `${s}=true`).join()}`;
  return isPublicAccessBlocked ? undefined : error('must block public access with all four settings', name, fix);
};

const versioningProblem: Check = ({ isVersioned }, { name }) =>
  isVersioned
    ? undefined
    : warning(
        'should be versioned: otherwise objects that are overwritten or deleted by mistake are lost',
        name,
        `run aws s3api put-bucket-versioning --bucket ${name} --versioning-configuration Status=Enabled`,
      );

const leftoverProblem: Check = ({ expiresLeftovers }, { name, purpose }) =>
  purpose === 'data' || expiresLeftovers
    ? undefined
    : warning(
        `should expire objects with the tag ${LEFTOVER_TAG.key}=${LEFTOVER_TAG.value}, which is set on incomplete checkpoints when their run ends`,
        `no such lifecycle rule of ${name}`,
        'add a lifecycle rule with this tag filter and an expiration',
      );

const CHECKS = [
  encryptionProblem,
  uploadProblem,
  tlsProblem,
  denialProblem,
  publicAccessProblem,
  versioningProblem,
  leftoverProblem,
];
