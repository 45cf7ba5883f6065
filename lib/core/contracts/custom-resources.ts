import { z } from 'zod';
import { parseJson } from '../config/formats/json';
import { sha256 } from '../config/formats/sha256';

/**
 * Properties of Slipway's custom resources: written by constructs and read by handlers. CloudFormation passes every scalar as a string.
 * Updates and deletions also deliver the properties of old templates, so a property must never be renamed or become required.
 */

const flag = z.enum(['true', 'false']).transform((text) => text === 'true');

/** A string that contains JSON of the given shape. */
const json = <T extends z.ZodType>(shape: T) =>
  z.string().transform((text, context): z.output<T> => {
    const parsed = shape.safeParse(parseJson(text), { reportInput: true });
    if (parsed.success) return parsed.data;
    context.issues.push({ code: 'custom', message: `must contain ${z.prettifyError(parsed.error)}`, input: text });
    return z.NEVER;
  });

/** Compares the quotas that the environment needs with the account's limits at deployment. */
export const QUOTA_PREFLIGHT_TYPE = 'Custom::SlipwayQuotaPreflight';

/** One quota and the amount that the environment needs; the shape of quota/need.ts. */
export const quotaNeedSchema = z.object({
  code: z.string().optional(),
  name: z.string().min(1),
  needed: z.number().nonnegative(),
  unit: z.enum(['instances', 'seconds', 'GiB']),
  kind: z.enum(['pool', 'per-job']),
  wantedBy: z.string(),
});

export const quotaPreflightSchema = z.looseObject({
  environment: z.string().min(1),
  needs: json(z.array(quotaNeedSchema)),
  enforce: z.enum(['fail', 'warn', 'off']),
  requestIncrease: flag,
});
export type QuotaPreflightProperties = z.output<typeof quotaPreflightSchema>;

/** Writes driver and trainer into the data bucket. */
export const DRIVER_PUBLISH_TYPE = 'Custom::SlipwayDriver';

/** The archive written at synth: the text of every file of driver and trainer, by its key below `drivers/<hash>/`. */
export const driverArchiveSchema = z.object({
  hash: z.string().regex(/^[0-9a-f]{12}$/),
  files: z.array(z.object({ name: z.string().min(1), text: z.string() })).min(1),
});
export type DriverArchive = z.output<typeof driverArchiveSchema>;

/** Properties of the driver publication: the asset to read and the bucket to write to. */
export const driverPublishSchema = z.looseObject({
  sourceBucket: z.string().min(3),
  sourceKey: z.string().min(1),
  bucket: z.string().min(3),
  hash: z.string().regex(/^[0-9a-f]{12}$/),
});

/** Rejects an update or deletion of the stack that would affect live runs. */
export const GUARD_TYPE = 'Custom::SlipwayGuard';

const names = json(z.array(z.string()));

/** `delete`: rejects the deletion of the stack. `replace`: rejects an update that would affect live runs. */
export const guardSchema = z.looseObject({
  guards: z.enum(['delete', 'replace']),
  environment: z.string().min(1),
  /** `replace`: hash over the properties whose change makes CloudFormation replace role, network or key. */
  fingerprint: z.string().optional(),
  /** Teams and zones: additions are safe, removals affect live runs. */
  teams: names.optional(),
  zones: names.optional(),
  /** Whether the deletion of the stack keeps buckets, key and table, or `adopted` from an earlier stack. */
  storage: z.enum(['retained', 'deleted', 'adopted']).optional(),
  /** Of templates of version 0.2.0, which ids of their guards contain. */
  movedSubnets: names.optional(),
  /** Encryption of the repository that the stack creates; `none` when it creates none. */
  repository: z.enum(['kms', 'aes256', 'none']).optional(),
  /** Existing key that encrypts buckets and table; absent = a key that the stack creates. */
  keyArn: z.string().min(20).optional(),
  /** Keys of teams that have their own key: `own` or an ARN; absent = none. */
  teamKeys: json(z.record(z.string(), z.string())).optional(),
  /** Whether the jobs of each team have a security group of their own; absent = no. */
  teamGroups: z.literal('own').optional(),
});
export type GuardProperties = z.output<typeof guardSchema>;

/** Sets the retention of log groups that SageMaker uses for all jobs of the account. */
export const LOG_RETENTION_TYPE = 'Custom::SlipwaySharedLogRetention';

/** Properties of the retention of shared log groups, in days. */
export const logRetentionSchema = z.looseObject({
  logGroupNames: json(z.array(z.string().min(1)).min(1)),
  retentionDays: z.coerce.number().int().positive(),
});

/** Builds the training image and waits for it. */
export const IMAGE_BUILD_TYPE = 'Custom::SlipwayTrainingImage';

export const imageBuildSchema = z.looseObject({
  projectName: z.string().min(1),
  repositoryName: z.string().min(1),
  /** Hash of the complete content of the image: each tag is built once. */
  tag: z.string().regex(/^[a-z0-9][a-z0-9._-]{0,127}$/),
});

/** Submits a run at deployment. */
export const REGISTERED_RUN_TYPE = 'Custom::SlipwayRegisteredRun';

/**
 * A run that is submitted at deployment. The hash identifies the run: it is submitted once, even if a deployment is repeated or rolled
 * back.
 */
export const registeredRunSchema = z.looseObject({
  controlAliasArn: z.string().min(20),
  hash: sha256,
  assetBucket: z.string().min(3),
  runFileKey: z.string().min(1),
  codeKey: z.string().min(1).optional(),
  codeSha256: sha256.optional(),
});
export type RegisteredRunProperties = z.output<typeof registeredRunSchema>;

/** Empties the buckets that the stack deletes. */
export const EMPTY_STORAGE_TYPE = 'Custom::SlipwayEmptyStorage';

/** Buckets that the stack created and must be able to delete. */
export const emptyStorageSchema = z.looseObject({
  bucketNames: json(z.array(z.string().min(3)).min(1)),
  /** `rollback`: only when the creation of the stack is rolled back; `always`: also when the stack is deleted. */
  when: z.enum(['rollback', 'always']),
});

/** Adopts the resources that an earlier stack of the environment retained. */
export const ADOPT_STORAGE_TYPE = 'Custom::SlipwayAdoptStorage';

const policyStatement = z.looseObject({ Effect: z.string() });
const adoptedBucket = z.object({
  name: z.string().min(3),
  /** Statements that its policy must contain; other statements are kept. */
  statements: z.array(policyStatement),
  /** Days until objects with the leftover tag expire. */
  leftoverDays: z.number().int().positive().optional(),
});

/**
 * Resources that an earlier stack retained and this one uses: checked for existence, and given the policies that the deletion may have
 * removed.
 */
export const adoptStorageSchema = z.looseObject({
  buckets: json(z.array(adoptedBucket).min(1)),
  keyArn: z.string().min(20),
  tableName: z.string().min(3).optional(),
  repositoryName: z.string().min(2).optional(),
});
/** A bucket that an earlier stack retained, and the required content of its policy. */
export type AdoptedBucket = z.output<typeof adoptedBucket>;

/** Checks existing buckets and an existing key of the account. */
export const EXISTING_STORAGE_TYPE = 'Custom::SlipwayExistingStorage';

/** Existing buckets and an existing key that the environment uses: checked, never changed. */
export const existingStorageSchema = z.looseObject({
  partition: z.string().min(3),
  region: z.string().min(3),
  account: z.string().min(1),
  urlSuffix: z.string().min(3),
  buckets: json(z.object({ data: z.string().min(3).optional(), checkpoints: z.string().min(3).optional() })),
  keyArn: z.string().min(20).optional(),
  /** Bucket that a file system of the stack accesses with the key. */
  dataRepository: z.string().min(3).optional(),
});

/** Checks an existing VPC of the account. */
export const EXISTING_NETWORK_TYPE = 'Custom::SlipwayExistingNetwork';

/** An existing VPC that the environment uses, and the requirements of its jobs: checked, never changed. */
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

/** Disables the termination protection of a stack whose creation is rolled back; it has no properties. */
export const UNPROTECT_TYPE = 'Custom::SlipwayUnprotect';
