import { z } from 'zod';
import { PREEMPTION_TIMES, type PreemptionTimes } from './preemption-times';

/** What a platform team writes, one file per environment. Every option optional but name and regions. */
/** What a trust policy takes: IAM refuses a group, a policy, and a `*` that is only a part of a name. */
const principal = z
  .string()
  .regex(
    /^arn:aws[a-z-]*:iam::\d{12}:(root|(role|user)\/[\w+=,.@/-]*[\w+=,.@-])$/,
    'must be the ARN of an IAM role or user, or arn:aws:iam::<account>:root',
  );
/** Policies do not resolve aliases of keys. */
const keyArn = z
  .string()
  .regex(/^arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:key\/[0-9a-z-]+$/, 'must be the ARN of a KMS key, not of an alias');
const region = z.string().regex(/^[a-z]{2,4}(-[a-z]+)+-\d$/, 'must be a region such as us-west-2');
/** https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html; a `*` would be a wildcard in the roles' policies. */
const s3Prefix = z
  .string()
  .regex(
    /^s3:\/\/(?!\d+\.\d+\.\d+\.\d+(?:\/|$))(?!.*\.\.)[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](\/[^*?]*)?$/,
    'must be an S3 URI such as s3://bucket/prefix/, without * and ?',
  );
/** Ids of EC2 have 8 or 17 hexadecimal digits, those of file systems 8 to 40. */
const ec2Id = (prefix: string, kind: string) =>
  z
    .string()
    .regex(new RegExp(`^${prefix}-([0-9a-f]{8}|[0-9a-f]{17})$`), `must be ${kind} such as ${prefix}-0123456789abcdef0`);
const fileSystemId = z.string().regex(/^fs-[0-9a-f]{8,40}$/, 'must be a file system id such as fs-0123456789abcdef0');
const zoneId = z.string().regex(/^[a-z0-9]+-az\d+$/, 'must be a zone id such as usw2-az2');
const zone = z
  .string()
  .regex(/^([a-z0-9]+-az\d+|[a-z-]+-\d[a-z])$/, 'must be a zone id such as usw2-az2, or a zone name');
/** Services that scripts call from a locked network beside S3; each has an interface endpoint. */
export const ENDPOINT_SERVICES = [
  'ecr',
  'logs',
  'monitoring',
  'sts',
  'kms',
  'secretsmanager',
  'ssm',
  'sagemaker',
] as const;
const email = z.email('must be an e-mail address');
/** CloudFormation and the services behind it take 32-bit numbers. */
const MOST = 2_147_483_647;
/** No region has more, and the VPC has addresses for no more than seven. */
const MOST_ZONES = 6;
const unique = <T extends z.ZodType>(list: T) =>
  list.refine((items) => new Set(items as unknown[]).size === (items as unknown[]).length, 'must name each entry once');

const network = z.strictObject({
  mode: z.enum(['vpc-locked', 'vpc-nat', 'existing', 'none']).optional(),
  existing: z
    .strictObject({
      vpcId: ec2Id('vpc', 'a VPC id'),
      subnetIds: unique(z.array(ec2Id('subnet', 'a subnet id')).min(1).max(16)),
      securityGroupIds: unique(z.array(ec2Id('sg', 'a security group id')).min(1).max(5)),
    })
    .optional(),
  availabilityZoneIds: z
    .union(
      [z.literal('all'), unique(z.array(zoneId).min(1).max(MOST_ZONES))],
      'must be all, or a list of zone ids such as [usw2-az2]',
    )
    .optional(),
  /** Zones in the order in which version 0.1.0 numbered subnets: an environment of that version keeps its own. */
  subnetOrder: unique(z.array(zone).max(MOST_ZONES)).optional(),
  endpoints: unique(z.array(z.enum(ENDPOINT_SERVICES))).optional(),
  packages: z.enum(['none', 'wheels', 'codeartifact']).optional(),
  wheels: s3Prefix.optional(),
  codeArtifact: z
    .strictObject({
      domain: z.string().regex(/^[a-z][a-z0-9-]{0,48}[a-z0-9]$/, 'must be the name of a CodeArtifact domain'),
      repository: z.string().regex(/^[A-Za-z0-9][\w.-]{1,99}$/, 'must be the name of a CodeArtifact repository'),
    })
    .optional(),
});

const storage = z.strictObject({
  retain: z.boolean().optional(),
  checkpointExpirationDays: z.int().min(1).max(MOST).optional(),
  adopt: z.boolean().optional(),
  external: z
    .array(
      z.strictObject({
        s3: s3Prefix,
        access: z.enum(['read', 'read-write']).optional(),
        kmsKeyArn: keyArn.optional(),
      }),
    )
    .optional(),
  fsxLustre: z
    .strictObject({
      sizeGiB: z.int().min(1200).max(MOST),
      throughputMBpsPerTiB: z.int().optional(),
      zoneId,
    })
    .optional(),
  fileSystems: z
    .record(
      z.string().regex(/^[A-Za-z][\w-]*$/, 'must be letters, digits, - and _, the first a letter'),
      z.strictObject({
        fsxLustre: fileSystemId.optional(),
        efs: fileSystemId.optional(),
        directoryPath: z.string().regex(/^\//, 'must be a path that starts with /'),
      }),
    )
    .optional(),
});

const image = z.strictObject({
  base: z.enum(['pytorch-2.13', 'smp-2.8.0', 'cuda']).optional(),
  build: z.boolean().optional(),
  /** A fixed image instead of one that the stack builds. */
  uri: z.string().min(1).max(255).optional(),
  encryption: z
    .enum(['kms', 'aes256'])
    .optional()
    .describe(
      "Encryption of the image repository, fixed when it is created: kms uses the environment's key, aes256 a key that ECR owns. Default kms.",
    ),
});

const quotas = z.strictObject({
  enforce: z.enum(['fail', 'warn', 'off']).optional(),
  requestIncrease: z.boolean().optional(),
  require: z
    .array(
      z.strictObject({
        instanceType: z.string(),
        count: z.int().min(1).max(MOST),
        usage: z.enum(['training', 'spot', 'warm-pool', 'processing']).optional(),
      }),
    )
    .optional(),
});

const guardrails = z.strictObject({
  allowedInstanceTypes: z.array(z.string()).min(1).optional(),
  maxInstancesPerRun: z.int().min(1).optional(),
  maxConcurrentInstances: z.int().min(1).optional(),
  maxCostPerRunUsd: z.number().positive().optional(),
  maxRuntimeSeconds: z.int().min(1).optional(),
  allowedImages: z.array(z.string()).min(1).optional(),
  requireNetworkIsolation: z.boolean().optional(),
  allowRemoteDebug: z.boolean().optional(),
});

const teamName = z
  .string()
  .regex(/^[a-z][a-z0-9]{0,11}$/, 'must be 1-12 lower-case letters or digits, the first a letter');
/** A prefix of the data bucket; in a policy `*` and `?` would be wildcards. */
const dataPrefix = z
  .string()
  .regex(/^[\w!.()'-][\w!.()'/ -]*\/$/, 'must be a prefix of the data bucket that ends with /, such as tokens/');
const mlflowArn = z
  .string()
  .regex(
    /^arn:aws[a-z-]*:sagemaker:[a-z0-9-]+:\d{12}:mlflow-(tracking-server|app)\/[\w-]+$/,
    'must be the ARN of an MLflow tracking server or app',
  );
/** A channel of a workspace that the account has authorised in the console of Amazon Q Developer in chat applications. */
const slackChannel = z.strictObject({
  workspaceId: z.string().regex(/^[0-9A-Z]{1,255}$/, 'must be the id of a Slack workspace, such as T0123ABCD'),
  channelId: z.string().regex(/^[A-Za-z0-9]{1,128}$/, 'must be the id of a Slack channel, such as C0123ABCD'),
});
const notifications = z.strictObject({
  emails: unique(z.array(email)).optional(),
  slackChannel: slackChannel.optional(),
});

const team = z.strictObject({
  principals: unique(z.array(principal)).optional(),
  share: z.number().positive().optional(),
  /** Prefixes of the data bucket that the team may write, beside its own `teams/<team>/`. */
  data: unique(z.array(dataPrefix)).optional(),
  /** MLflow tracking servers and apps that the team's runs may log to. */
  mlflow: unique(z.array(mlflowArn)).optional(),
  /** Who is told of the team's runs, beside those whom the environment names. */
  notifications: notifications.optional(),
});

const sections = {
  network: network.optional(),
  storage: storage.optional(),
  image: image.optional(),
  quotas: quotas.optional(),
  guardrails: guardrails.optional(),
  teams: z.record(teamName, team).optional(),
  access: z
    .strictObject({
      platformAdmins: unique(z.array(principal)).optional(),
      auditors: unique(z.array(principal)).optional(),
      ci: unique(z.array(principal)).optional(),
    })
    .optional(),
  prices: z.record(z.string(), z.number().positive()).optional(),
  budget: z
    .strictObject({
      monthlyUsd: z.number().positive().max(1e12),
      // A budget takes ten notifications with ten addresses each, and no notification twice:
      // https://docs.aws.amazon.com/aws-cost-management/latest/APIReference/API_budgets_CreateBudget.html
      thresholdsPercent: unique(z.array(z.number().positive().max(1e9)).min(1).max(10)).optional(),
      emails: unique(z.array(email.max(50)).max(10)).optional(),
    })
    .optional(),
  queue: z
    .strictObject({
      /** Who decides which run starts next. Only `slipway`: docs/decisions/0008-aws-batch.md. */
      backend: z.enum(['slipway', 'batch']).optional(),
      /** Times of preemption, docs/queue.md. */
      preemption: z
        .strictObject({
          afterMinutes: z.number().nonnegative().max(10_080).optional(),
          leastTrainingMinutes: z.number().nonnegative().max(10_080).optional(),
          protectedMinutes: z.number().nonnegative().max(10_080).optional(),
        })
        .optional(),
    })
    .optional(),
  notifications: notifications.optional(),
  protection: z
    .strictObject({
      /** CloudFormation refuses to delete the stack until this is false and deployed. */
      terminationProtection: z.boolean().optional(),
    })
    .optional(),
};

const regionOverride = z
  .strictObject(sections)
  .nullable()
  .transform((v) => v ?? {});

export const environmentFileSchema = z.strictObject({
  schema: z.literal(1).optional(),
  name: z.string().regex(/^[a-z][a-z0-9]{0,11}$/, 'must be 1-12 lower-case letters or digits, the first a letter'),
  account: z
    .string()
    .regex(/^\d{12}$/, 'must be 12 digits in quotes')
    .optional(),
  regions: z.record(region, regionOverride).refine((r) => Object.keys(r).length > 0, 'must name at least one region'),
  ...sections,
  runs: z
    .array(
      z.strictObject({
        file: z.string().min(1),
        submit: z.enum(['manual', 'on-change']).optional(),
        region: region.optional(),
      }),
    )
    .optional(),
});

export type EnvironmentFile = z.output<typeof environmentFileSchema>;
type Sections = Omit<EnvironmentFile, 'schema' | 'name' | 'account' | 'regions' | 'runs'>;
type Guardrails = z.output<typeof guardrails>;

/** One environment in one region, overrides merged and defaults filled in. */
export interface EnvironmentSpec {
  name: string;
  account?: string;
  region: string;
  network: NonNullable<Sections['network']> & {
    mode: 'vpc-locked' | 'vpc-nat' | 'existing' | 'none';
    availabilityZoneIds: 'all' | string[];
    packages: 'none' | 'wheels' | 'codeartifact';
  };
  storage: NonNullable<Sections['storage']> & { retain: boolean; checkpointExpirationDays: number; adopt: boolean };
  image: NonNullable<Sections['image']> & {
    base: 'pytorch-2.13' | 'smp-2.8.0' | 'cuda';
    build: boolean;
    encryption: 'kms' | 'aes256';
  };
  quotas: { enforce: 'fail' | 'warn' | 'off'; requestIncrease: boolean; require: QuotaRequirement[] };
  guardrails: Guardrails;
  teams: Record<
    string,
    { principals: string[]; share: number; data: string[]; mlflow: string[]; notifications: Notifications }
  >;
  access: { platformAdmins: string[]; auditors: string[]; ci: string[] };
  prices: Record<string, number>;
  budget?: Sections['budget'];
  queue: {
    backend: 'slipway' | 'batch';
    preemption: PreemptionTimes;
  };
  notifications: Notifications;
  protection: { terminationProtection: boolean };
  /** `region`: where a deploy submits it; needed only where the environment has several. */
  runs: { file: string; submit: 'manual' | 'on-change'; region?: string }[];
}

/** Who is told of runs. */
export interface Notifications {
  emails: string[];
  slackChannel?: { workspaceId: string; channelId: string };
}

export interface QuotaRequirement {
  instanceType: string;
  count: number;
  usage: 'training' | 'spot' | 'warm-pool' | 'processing';
}

/** The environment of each region: sections under `regions.<region>` override the same options above. */
export function resolveEnvironments(file: EnvironmentFile): EnvironmentSpec[] {
  return Object.entries(file.regions).map(([name, overrides]) => resolveEnvironment(file, name, overrides));
}

function resolveEnvironment(file: EnvironmentFile, regionName: string, over: Sections): EnvironmentSpec {
  const merged = <K extends keyof Sections>(key: K) => ({ ...file[key], ...over[key] }) as NonNullable<Sections[K]>;
  const teams = Object.entries(merged('teams'));
  return {
    name: file.name,
    account: file.account,
    region: regionName,
    network: { mode: 'vpc-locked', availabilityZoneIds: 'all', packages: 'none', ...merged('network') },
    storage: { retain: true, checkpointExpirationDays: 90, adopt: false, ...merged('storage') },
    image: { base: 'pytorch-2.13', build: true, encryption: 'kms', ...merged('image') },
    quotas: resolveQuotas(merged('quotas')),
    guardrails: merged('guardrails'),
    teams: Object.fromEntries(
      (teams.length > 0 ? teams : [['default', {} as z.output<typeof team>] as const]).map(([n, t]) => [
        n,
        { principals: [], share: 1, data: [], mlflow: [], ...t, notifications: { emails: [], ...t.notifications } },
      ]),
    ),
    access: { platformAdmins: [], auditors: [], ci: [], ...merged('access') },
    prices: merged('prices'),
    budget: over.budget ?? file.budget,
    queue: resolveQueue(merged('queue')),
    notifications: { emails: [], ...merged('notifications') },
    protection: { terminationProtection: merged('storage').retain ?? true, ...merged('protection') },
    runs: (file.runs ?? []).map((run) => ({ submit: 'manual' as const, ...run })),
  };
}

function resolveQueue({ backend = 'slipway', preemption }: NonNullable<Sections['queue']>): EnvironmentSpec['queue'] {
  return { backend, preemption: { ...PREEMPTION_TIMES, ...preemption } };
}

function resolveQuotas(given: NonNullable<Sections['quotas']>): EnvironmentSpec['quotas'] {
  return {
    enforce: given.enforce ?? 'fail',
    requestIncrease: given.requestIncrease ?? false,
    require: (given.require ?? []).map((r) => ({ usage: 'training' as const, ...r })),
  };
}
