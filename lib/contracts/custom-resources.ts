import { z } from 'zod';
import { sha256 } from '../spec/formats/sha256';

/**
 * Properties of our custom resources: what a construct writes and a handler reads. CloudFormation hands every scalar over as a
 * string. Old templates come back in updates and deletions, so that a property is never renamed or made required later.
 */

const flag = z.enum(['true', 'false']).transform((text) => text === 'true');

/** Text that holds JSON of one shape. */
const json = <T extends z.ZodType>(shape: T) =>
  z.string().transform((text, context): z.output<T> => {
    const parsed = shape.safeParse(parseJson(text), { reportInput: true });
    if (parsed.success) return parsed.data;
    context.issues.push({ code: 'custom', message: `must hold ${z.prettifyError(parsed.error)}`, input: text });
    return z.NEVER;
  });

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Compares the quotas that the environment needs with the account's at deploy. */
export const QUOTA_PREFLIGHT_TYPE = 'Custom::SlipwayQuotaPreflight';

/** One quota and how much of it the environment needs; the shape of quota/need.ts. */
export const quotaNeedSchema = z.object({
  code: z.string().optional(),
  name: z.string().min(1),
  needed: z.number().nonnegative(),
  unit: z.enum(['instances', 'seconds', 'GiB']),
  kind: z.enum(['pool', 'per-job']),
  wantedBy: z.string(),
});

/** Properties of the quota preflight. */
export const quotaPreflightSchema = z.looseObject({
  environment: z.string().min(1),
  needs: json(z.array(quotaNeedSchema)),
  enforce: z.enum(['fail', 'warn', 'off']),
  requestIncrease: flag,
});
/** Properties of the quota preflight, as its handler reads them. */
export type QuotaPreflightProperties = z.output<typeof quotaPreflightSchema>;

/** Writes driver and trainer into the data bucket. */
export const DRIVER_PUBLISH_TYPE = 'Custom::SlipwayDriver';

/** The archive that synth writes: every file of the driver and the trainer as text, by its key below `drivers/<hash>/`. */
export const driverArchiveSchema = z.object({
  hash: z.string().regex(/^[0-9a-f]{12}$/),
  files: z.array(z.object({ name: z.string().min(1), text: z.string() })).min(1),
});
/** The archive of driver and trainer, as read. */
export type DriverArchive = z.output<typeof driverArchiveSchema>;

/** Properties of the publication of the driver: the asset to read, the bucket to write. */
export const driverPublishSchema = z.looseObject({
  sourceBucket: z.string().min(3),
  sourceKey: z.string().min(1),
  bucket: z.string().min(3),
  hash: z.string().regex(/^[0-9a-f]{12}$/),
});

/** Refuses an update or a deletion of the stack that would take something from live runs. */
export const GUARD_TYPE = 'Custom::SlipwayGuard';

const names = json(z.array(z.string()));

/**
 * `delete`: refuses the deletion of the stack. `replace`: refuses an update that would take something from live runs. Version 0.1.0
 * wrote the fingerprint only.
 */
export const guardSchema = z.looseObject({
  guards: z.enum(['delete', 'replace']),
  environment: z.string().min(1),
  /** `replace`: hash over what, when it changes, makes CloudFormation replace role, network or key. */
  fingerprint: z.string().optional(),
  /** The fingerprint as version 0.1.0 made it of the same environment file: an update from that version compares it. */
  previousFingerprint: z.string().optional(),
  /** Teams and zones: new ones take nothing from anybody, removed ones do. */
  teams: names.optional(),
  zones: names.optional(),
  /** What becomes of buckets, key and table with the stack, or that an earlier one left them. */
  storage: z.enum(['retained', 'deleted', 'adopted']).optional(),
  /** Zones whose subnets version 0.1.0 laid elsewhere, in the order that it went by; none when the subnets stay. */
  movedSubnets: names.optional(),
  /** Encryption of the repository that the stack makes; none when it makes none. Repositories of older stacks have AES-256. */
  repository: z.enum(['kms', 'aes256', 'none']).optional(),
  /** Existing key that buckets and table are encrypted with; absent: one that the stack makes. */
  keyArn: z.string().min(20).optional(),
  /** Keys of teams that have one of their own: `own`, or an ARN; absent: no team has. */
  teamKeys: json(z.record(z.string(), z.string())).optional(),
});
/** Properties of a guard, as its handler reads them. */
export type GuardProperties = z.output<typeof guardSchema>;

/** Sets the retention of log groups that SageMaker shares among all jobs of the account. */
export const LOG_RETENTION_TYPE = 'Custom::SlipwaySharedLogRetention';

/** Properties of the retention of shared log groups, in days. */
export const logRetentionSchema = z.looseObject({
  logGroupNames: json(z.array(z.string().min(1)).min(1)),
  retentionDays: z.coerce.number().int().positive(),
});

/** Builds the training image and waits for it. */
export const IMAGE_BUILD_TYPE = 'Custom::SlipwayTrainingImage';

/** Properties of an image build. */
export const imageBuildSchema = z.looseObject({
  projectName: z.string().min(1),
  repositoryName: z.string().min(1),
  /** Content hash of everything that goes into the image: one tag, one build. */
  tag: z.string().regex(/^[a-z0-9][a-z0-9._-]{0,127}$/),
});

/** Submits a run with a deploy. */
export const REGISTERED_RUN_TYPE = 'Custom::SlipwayRegisteredRun';

/** A run that a deploy submits. The same hash is the same run: it is submitted once, also when a deploy is repeated or undone. */
export const registeredRunSchema = z.looseObject({
  controlAliasArn: z.string().min(20),
  hash: sha256,
  assetBucket: z.string().min(3),
  runFileKey: z.string().min(1),
  codeKey: z.string().min(1).optional(),
  codeSha256: sha256.optional(),
});
/** Properties of a registered run, as its handler reads them. */
export type RegisteredRunProperties = z.output<typeof registeredRunSchema>;

/** Empties buckets that the stack deletes. */
export const EMPTY_STORAGE_TYPE = 'Custom::SlipwayEmptyStorage';

/** Buckets that the stack made and must be able to delete. */
export const emptyStorageSchema = z.looseObject({
  bucketNames: json(z.array(z.string().min(3)).min(1)),
  /** `rollback`: only while the creation of the stack is rolled back; `always`: when the stack is deleted, too. */
  when: z.enum(['rollback', 'always']),
  /** The bucket with a replication rule, which it loses when it outlives the stack. */
  replicated: z.string().min(3).optional(),
});

/** Takes over what an earlier stack of the environment left. */
export const ADOPT_STORAGE_TYPE = 'Custom::SlipwayAdoptStorage';

/** A statement of a resource policy, as IAM writes it. */
const policyStatement = z.looseObject({ Effect: z.string() });
const adoptedBucket = z.object({
  name: z.string().min(3),
  /** Statements that its policy must hold; others stay. */
  statements: z.array(policyStatement),
  /** Days until objects that carry the tag of leftovers go. */
  leftoverDays: z.number().int().positive().optional(),
});

/** What an earlier stack left and this one uses: checked to be there, and given the policies that a deletion may have taken. */
export const adoptStorageSchema = z.looseObject({
  buckets: json(z.array(adoptedBucket).min(1)),
  keyArn: z.string().min(20),
  tableName: z.string().min(3).optional(),
  repositoryName: z.string().min(2).optional(),
});
/** A bucket that an earlier stack left, and what its policy must hold. */
export type AdoptedBucket = z.output<typeof adoptedBucket>;

/** Checks buckets and a key that the account had before the environment. */
export const EXISTING_STORAGE_TYPE = 'Custom::SlipwayExistingStorage';

/** Buckets and a key of the account that the environment uses and does not make: checked, never changed. */
export const existingStorageSchema = z.looseObject({
  partition: z.string().min(3),
  region: z.string().min(3),
  account: z.string().min(1),
  urlSuffix: z.string().min(3),
  buckets: json(z.object({ data: z.string().min(3).optional(), checkpoints: z.string().min(3).optional() })),
  keyArn: z.string().min(20).optional(),
  /** Bucket that a file system of the stack reads and writes with the key. */
  dataRepository: z.string().min(3).optional(),
});

/** Checks a VPC that the account had before the environment. */
export const EXISTING_NETWORK_TYPE = 'Custom::SlipwayExistingNetwork';

/** A VPC of the account that the environment uses and does not make, and what jobs need of it: checked, never changed. */
export const existingNetworkSchema = z.looseObject({
  network: json(
    z.object({
      region: z.string().min(3),
      account: z.string().min(1),
      vpcId: z.string().min(5),
      subnetIds: z.array(z.string().min(8)).min(1),
      securityGroupIds: z.array(z.string().min(4)).min(1),
      usesEfa: z.boolean(),
      addresses: z.number().int().nonnegative(),
      services: z.array(z.object({ service: z.string().min(2), option: z.string().min(2) })),
    }),
  ),
});

/** Takes the termination protection off a stack whose creation is rolled back; it has no properties. */
export const UNPROTECT_TYPE = 'Custom::SlipwayUnprotect';
