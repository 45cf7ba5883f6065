import { z } from 'zod';

/** What a platform team writes, one file per environment. Every option optional but name and regions. */
const arn = (service: string, kind: string) =>
  z.string().regex(new RegExp(`^arn:aws[a-z-]*:${service}:`), `must be the ARN of ${kind}`);
const principal = arn('iam', 'an IAM principal');
const region = /^[a-z]{2,4}(-[a-z]+)+-\d$/;
const s3Prefix = z
  .string()
  .regex(/^s3:\/\/[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](\/|$)/, 'must be an S3 URI such as s3://bucket/prefix/');

const network = z.strictObject({
  mode: z.enum(['vpc-locked', 'vpc-nat', 'existing', 'none']).optional(),
  existing: z
    .strictObject({
      vpcId: z.string().regex(/^vpc-[0-9a-f]+$/, 'must be a VPC id'),
      subnetIds: z
        .array(z.string().regex(/^subnet-[0-9a-f]+$/, 'must be a subnet id'))
        .min(1)
        .max(16),
      securityGroupIds: z
        .array(z.string().regex(/^sg-[0-9a-f]+$/, 'must be a security group id'))
        .min(1)
        .max(5),
    })
    .optional(),
  availabilityZoneIds: z
    .union([
      z.literal('all'),
      z.array(z.string().regex(/^[a-z0-9]+-az\d+$/, 'must be a zone id such as usw2-az2')).min(1),
    ])
    .optional(),
  packages: z.enum(['none', 'wheels', 'codeartifact']).optional(),
  wheels: s3Prefix.optional(),
  codeArtifact: z.strictObject({ domain: z.string(), repository: z.string() }).optional(),
});

const storage = z.strictObject({
  retain: z.boolean().optional(),
  checkpointExpirationDays: z.int().min(1).optional(),
  adopt: z.boolean().optional(),
  external: z
    .array(
      z.strictObject({
        s3: s3Prefix,
        access: z.enum(['read', 'read-write']).optional(),
        kmsKeyArn: arn('kms', 'a KMS key').optional(),
      }),
    )
    .optional(),
  fsxLustre: z
    .strictObject({
      sizeGiB: z.int().min(1200),
      throughputMBpsPerTiB: z.int().optional(),
      zoneId: z.string(),
    })
    .optional(),
  fileSystems: z
    .record(
      z.string(),
      z.strictObject({ fsxLustre: z.string().optional(), efs: z.string().optional(), directoryPath: z.string() }),
    )
    .optional(),
});

const image = z.strictObject({
  base: z.enum(['pytorch-2.13', 'smp-2.8.0', 'cuda']).optional(),
  build: z.boolean().optional(),
  /** A fixed image instead of one that the stack builds. */
  uri: z.string().min(1).max(255).optional(),
});

const quotas = z.strictObject({
  enforce: z.enum(['fail', 'warn', 'off']).optional(),
  requestIncrease: z.boolean().optional(),
  require: z
    .array(
      z.strictObject({
        instanceType: z.string(),
        count: z.int().min(1),
        usage: z.enum(['training', 'spot', 'warm-pool', 'processing']).optional(),
      }),
    )
    .optional(),
});

const guardrails = z.strictObject({
  allowedInstanceTypes: z.array(z.string()).optional(),
  maxInstancesPerRun: z.int().min(1).optional(),
  maxConcurrentInstances: z.int().min(1).optional(),
  maxCostPerRunUsd: z.number().positive().optional(),
  maxRuntimeSeconds: z.int().min(1).optional(),
  allowedImages: z.array(z.string()).optional(),
  requireNetworkIsolation: z.boolean().optional(),
  allowRemoteDebug: z.boolean().optional(),
});

const teamName = z
  .string()
  .regex(/^[a-z][a-z0-9]{0,11}$/, 'must be 1-12 lower-case letters or digits, the first a letter');
const team = z.strictObject({ principals: z.array(principal).optional(), share: z.number().positive().optional() });

const sections = {
  network: network.optional(),
  storage: storage.optional(),
  image: image.optional(),
  quotas: quotas.optional(),
  guardrails: guardrails.optional(),
  teams: z.record(teamName, team).optional(),
  access: z
    .strictObject({
      platformAdmins: z.array(principal).optional(),
      auditors: z.array(principal).optional(),
      ci: z.array(principal).optional(),
    })
    .optional(),
  prices: z.record(z.string(), z.number().positive()).optional(),
  budget: z
    .strictObject({
      monthlyUsd: z.number().positive(),
      thresholdsPercent: z.array(z.number().positive()).optional(),
      emails: z.array(z.email()).optional(),
    })
    .optional(),
  notifications: z.strictObject({ emails: z.array(z.email()).optional() }).optional(),
};

const regionOverride = z.union([z.null(), z.strictObject(sections)]).transform((v) => v ?? {});

export const environmentFileSchema = z.strictObject({
  schema: z.literal(1).optional(),
  name: z.string().regex(/^[a-z][a-z0-9]{0,11}$/, 'must be 1-12 lower-case letters or digits, the first a letter'),
  account: z
    .string()
    .regex(/^\d{12}$/, 'must be 12 digits in quotes')
    .optional(),
  regions: z
    .record(z.string().regex(region, 'must be a region such as us-west-2'), regionOverride)
    .refine((r) => Object.keys(r).length > 0, 'must name at least one region'),
  ...sections,
  runs: z
    .array(
      z.strictObject({
        file: z.string().min(1),
        submit: z.enum(['manual', 'on-change']).optional(),
        region: z.string().regex(region, 'must be a region such as us-west-2').optional(),
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
  image: NonNullable<Sections['image']> & { base: 'pytorch-2.13' | 'smp-2.8.0' | 'cuda'; build: boolean };
  quotas: { enforce: 'fail' | 'warn' | 'off'; requestIncrease: boolean; require: QuotaRequirement[] };
  guardrails: Guardrails;
  teams: Record<string, { principals: string[]; share: number }>;
  access: { platformAdmins: string[]; auditors: string[]; ci: string[] };
  prices: Record<string, number>;
  budget?: Sections['budget'];
  notifications: { emails: string[] };
  /** `region`: where a deploy submits it; needed only where the environment has several. */
  runs: { file: string; submit: 'manual' | 'on-change'; region?: string }[];
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
    image: { base: 'pytorch-2.13', build: true, ...merged('image') },
    quotas: resolveQuotas(merged('quotas')),
    guardrails: merged('guardrails'),
    teams: Object.fromEntries(
      (teams.length > 0 ? teams : [['default', {}] as const]).map(([n, t]) => [n, { principals: [], share: 1, ...t }]),
    ),
    access: { platformAdmins: [], auditors: [], ci: [], ...merged('access') },
    prices: merged('prices'),
    budget: over.budget ?? file.budget,
    notifications: { emails: [], ...merged('notifications') },
    runs: (file.runs ?? []).map((run) => ({ submit: 'manual' as const, ...run })),
  };
}

function resolveQuotas(given: NonNullable<Sections['quotas']>): EnvironmentSpec['quotas'] {
  return {
    enforce: given.enforce ?? 'fail',
    requestIncrease: given.requestIncrease ?? false,
    require: (given.require ?? []).map((r) => ({ usage: 'training' as const, ...r })),
  };
}
