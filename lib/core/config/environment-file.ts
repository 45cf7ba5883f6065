import { z } from 'zod';
import { DEFAULT_VPC_CIDR } from '../catalog/subnet-plan';
import { iam, logging, secrets, tags } from './environment/company';
import { region } from './environment/formats';
import { image } from './environment/image';
import { budget, guardrails, PREEMPTION_TIMES, queue, quotas } from './environment/limits';
import { network, UNNAMED_TEAM } from './environment/network';
import { access, notificationsOfAll, team, teamName } from './environment/people';
import { storage } from './environment/storage';
import { type Filled, field, flag, formed, option, section } from './formats/field';
import { fill } from './formats/json';

const protection = z.strictObject({
  terminationProtection: option(
    z.boolean(),
    'Whether CloudFormation rejects the deletion of the stack until this is deployed as false. Default: `storage.retain`.',
  ),
  tableDeletionProtection: flag(
    'Whether DynamoDB rejects the deletion of the run table until this is deployed as false.',
  ),
});

/** The sections of an environment file, which each region may override. */
const sections = {
  iam: option(iam, 'Names, paths and boundary of every role that the stack makes.', {
    examples: [{ permissionsBoundary: 'ml-boundary', rolePath: '/ml/', rolePrefix: 'acme-' }],
  }),
  tags: option(tags, 'Tags of all resources that support tags, and of all jobs. Default: only `slipway:environment`.', {
    examples: [{ CostCenter: '1234' }],
  }),
  network: option(network, 'Network of the jobs.', { examples: [{ mode: 'vpc-locked' }] }),
  storage: option(storage, 'Buckets and file systems, and what happens to them when the stack is deleted.', {
    examples: [{ retain: true, checkpointExpirationDays: 90 }],
  }),
  image: option(image, 'Container image of the environment.', { examples: [{ base: 'pytorch-2.13' }] }),
  quotas: option(quotas, 'Quotas that a deploy checks before it makes anything.', {
    examples: [{ enforce: 'fail', require: [{ instanceType: 'ml.p5.48xlarge', count: 2 }] }],
  }),
  guardrails: option(guardrails, 'Limits that the control plane checks on every launch. Default: none.', {
    examples: [{ allowedInstanceTypes: ['ml.p5*.48xlarge'], maxInstancesPerRun: 16 }],
  }),
  teams: option(
    z.record(teamName, field(team, 'One team: its own roles, S3 prefixes, launch alias and queue share.')),
    'Teams, by name. Default: one team with the name default.',
    { examples: [{ nlp: { principals: ['arn:aws:iam::111122223333:role/nlp'], share: 2 } }] },
  ),
  access: option(access, 'Who may assume the roles beside those of the teams. Default: nobody.', {
    examples: [{ auditors: ['arn:aws:iam::111122223333:role/audit'] }],
  }),
  prices: option(
    z.record(z.string(), field(z.number().positive(), 'Price of one instance, in USD per hour.')),
    'Negotiated prices by instance type, in USD per instance-hour. Default: dated list prices.',
    { examples: [{ 'ml.p5.48xlarge': 31.5 }] },
  ),
  budget: option(
    budget,
    'Monthly budget of the environment in this region, which notifies and stops nothing. Default: none.',
    { examples: [{ monthlyUsd: 500000, thresholdsPercent: [50, 80, 100], emails: ['ml-platform@example.com'] }] },
  ),
  queue: option(queue, 'The queue of runs.', { examples: [{ preemption: { afterMinutes: 30 } }] }),
  notifications: option(notificationsOfAll, 'Who is notified of all runs and alarms. Default: nobody.', {
    examples: [{ emails: ['ml-platform@example.com'] }],
  }),
  secrets: option(secrets, 'Secrets that run files may name.', { examples: [{ allowedPrefix: 'slipway/{team}/' }] }),
  logging: option(logging, 'Log groups of the stack.', { examples: [{ kms: true, retentionDays: 365 }] }),
  protection: option(protection, 'Protection of the stack against deletion.', {
    examples: [{ terminationProtection: true }],
  }),
};

const regionOverride = z
  .strictObject(sections)
  .nullable()
  .transform((v) => v ?? {});

const registeredRun = section('A run that belongs to the environment.', {
  file: field(z.string().min(1), 'Run file, relative to this file.', {
    examples: ['../runs/sagemaker/llama2-13b.yaml'],
  }),
  submit: option(
    z.enum(['manual', 'on-change']),
    'When a deployment submits the run: never (manual), or when the file has changed (on-change).',
    { default: 'manual' },
  ),
  region: option(region, 'Region in which a deployment submits the run. Default: the only region of the environment.', {
    examples: ['us-west-2'],
  }),
});

const accountId = formed(/^\d{12}$/, 'must be 12 digits in quotes');

/**
 * The file that a platform team writes, one per environment. All options are optional except name and regions. `.meta` of each field is
 * shown in editors and in docs/reference/environment-file.md.
 */
export const environmentFileSchema = z.strictObject({
  schema: option(z.literal(1), 'Version of the file format.', { default: 1 }),
  name: field(
    formed(/^[a-z][a-z0-9]{0,11}$/, 'must be 1-12 lower-case letters or digits, the first a letter'),
    'Name of the environment; stacks are Slipway-<name>-<region>.',
    { examples: ['research'] },
  ),
  account: option(accountId, 'AWS account, 12 digits in quotes. Default: the account of the current credentials.', {
    examples: ['111122223333'],
  }),
  accounts: option(
    z
      .record(
        formed(/^[A-Za-z][A-Za-z0-9-]{0,31}$/, 'must be 1-32 letters, digits and hyphens, the first a letter'),
        field(accountId, 'AWS account of one stage, 12 digits in quotes.'),
      )
      .refine((given) => Object.keys(given).length > 0, 'must name at least one account'),
    'AWS accounts by pipeline stage, in deployment order (`slipway init --pipeline`), instead of `account`. Default: none.',
    { examples: [{ dev: '111122223333', prod: '444455556666' }] },
  ),
  regions: field(
    z
      .record(region, field(regionOverride, 'Options that differ in this region.'))
      .refine((r) => Object.keys(r).length > 0, 'must name at least one region'),
    'Regions, with one stack each. Options below a region, also those of a team, override the same options of the environment; a list replaces the whole list, and a file system the whole file system.',
    { examples: [{ 'us-west-2': {}, 'us-east-1': { quotas: { enforce: 'warn' } } }] },
  ),
  ...sections,
  runs: option(z.array(registeredRun), 'Runs that the quotas must allow, and that a deploy may submit.', {
    default: [],
    examples: [[{ file: '../runs/sagemaker/llama2-13b.yaml', submit: 'manual' }]],
  }),
});

/** An environment file after schema and defaults. */
export type EnvironmentFile = z.output<typeof environmentFileSchema>;
type Sections = Omit<EnvironmentFile, 'schema' | 'name' | 'account' | 'accounts' | 'regions' | 'runs'>;
type Section<K extends keyof Sections> = NonNullable<Sections[K]>;
type Team = Section<'teams'>[string];

/** One environment in one region, with overrides merged and defaults filled in. */
export type EnvironmentSpec = ReturnType<typeof resolveEnvironment>;

/** Recipients of notices about runs. */
export type Notifications = Filled<Section<'notifications'>, 'emails'>;

/** A quota in `quotas.require` of an environment. */
export type QuotaRequirement = EnvironmentSpec['quotas']['require'][number];

/** The environment of each region: options under `regions.<region>` override the same options above, and lists the whole list. */
export function resolveEnvironments(file: EnvironmentFile): EnvironmentSpec[] {
  return Object.entries(file.regions).map(([name, overrides]) => resolveEnvironment(file, name, overrides));
}

/** Days for which the items of a run that is over are kept. */
export const DEFAULT_RUN_RETENTION_DAYS = 400;

/** Settings of log groups without the option `logging`. */
export const DEFAULT_LOGGING: Required<Section<'logging'>> = { kms: true, retentionDays: 90 };

/** What an environment has where its file leaves options out. */
const DEFAULTS = {
  network: { mode: 'vpc-locked', availabilityZoneIds: 'all', packages: 'none', cidr: DEFAULT_VPC_CIDR, reserved: [] },
  storage: {
    retain: true,
    runRetentionDays: DEFAULT_RUN_RETENTION_DAYS,
    checkpointExpirationDays: 90,
    adopt: false,
  },
  image: { base: 'pytorch-2.13', build: true, encryption: 'kms' },
  quotas: { enforce: 'fail', requestIncrease: false },
  access: { platformAdmins: [], auditors: [], ci: [] },
  queue: { backend: 'slipway' },
  notifications: { emails: [] },
  logging: DEFAULT_LOGGING,
  protection: { tableDeletionProtection: false },
} satisfies { [K in keyof Sections]: Partial<Section<K>> };

/** The kinds of a file system exclude each other: one below a region replaces the whole one above. */
function resolveEnvironment(file: EnvironmentFile, regionName: string, over: Sections) {
  const merged = <K extends keyof Sections>(key: K) => (fill(over[key], file[key]) ?? {}) as Section<K>;
  const filled = <K extends keyof typeof DEFAULTS>(key: K) =>
    ({ ...(DEFAULTS[key] as object), ...merged(key) }) as Filled<
      Section<K>,
      keyof (typeof DEFAULTS)[K] & keyof Section<K>
    >;
  const fileSystems = { ...file.storage?.fileSystems, ...over.storage?.fileSystems };
  return {
    name: file.name,
    account: file.account,
    // Accounts by stage of a pipeline.
    ...(file.accounts && { accounts: file.accounts }),
    region: regionName,
    iam: merged('iam'),
    tags: merged('tags'),
    network: filled('network'),
    storage: { ...filled('storage'), ...(Object.keys(fileSystems).length > 0 && { fileSystems }) },
    image: filled('image'),
    quotas: {
      ...filled('quotas'),
      require: (merged('quotas').require ?? []).map((required) => ({ usage: 'training' as const, ...required })),
    },
    guardrails: merged('guardrails'),
    teams: resolveTeams(merged('teams')),
    access: filled('access'),
    prices: merged('prices'),
    budget: fill(over.budget, file.budget),
    queue: { ...filled('queue'), preemption: { ...PREEMPTION_TIMES, ...merged('queue').preemption } },
    notifications: filled('notifications'),
    secrets: merged('secrets'),
    logging: filled('logging'),
    protection: { terminationProtection: merged('storage').retain ?? true, ...filled('protection') },
    // `region`: the region in which a deploy submits the run; required only if the environment has several.
    runs: (file.runs ?? []).map((run) => ({ submit: 'manual' as const, ...run })),
  };
}

const TEAM_DEFAULTS = { principals: [], share: 1, data: [], mlflow: [], trainingPlans: [], dashboards: false };

function resolveTeams(
  given: Section<'teams'>,
): Record<string, Filled<Team, keyof typeof TEAM_DEFAULTS> & { notifications: Notifications }> {
  const named = Object.entries(given);
  const teams = named.length > 0 ? named : [[UNNAMED_TEAM, {} as Team] as const];
  return Object.fromEntries(
    teams.map(([name, options]) => [
      name,
      { ...TEAM_DEFAULTS, ...options, notifications: { emails: [], ...options.notifications } },
    ]),
  );
}
