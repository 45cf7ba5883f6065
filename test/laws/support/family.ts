import { Template } from 'aws-cdk-lib/assertions';
import fc from 'fast-check';
import { EnvironmentStack } from '../../../lib/cdk';
import { type EnvironmentSpec, resolveEnvironments } from '../../../lib/core/config/environment-file';
import { loadEnvironment } from '../../../lib/core/config/load';
import { checkEnvironment } from '../../../lib/core/rules/environment';
import { OPTION_CHANGES } from '../../../scripts/option-changes';
import { ENV, testApp } from '../../cdk/support/app';
import { onceInRun } from '../../support/once-in-run';
import type { Resources } from './changes';

/** An environment file as plain values. */
export type EnvironmentValues = Record<string, unknown>;

export interface SynthesisedTemplate {
  Resources: Resources;
  Parameters?: Record<string, { Type: string; Default?: string }>;
  Outputs?: Record<string, unknown>;
}

const LAB_ZONES = {
  'availability-zones:account=111122223333:region=us-west-2': ['a', 'b', 'c'].map((z) => `us-west-2${z}`),
};

/** The template of an environment file in us-west-2, made once; undefined where a rule refuses the file. */
export function templateOf(values: EnvironmentValues): SynthesisedTemplate | undefined {
  return onceInRun('family', values, () => ({ template: synthesise(values) })).template;
}

function synthesise(values: EnvironmentValues): SynthesisedTemplate | undefined {
  const spec = specOfFile(values);
  if (!spec) return undefined;
  const stack = new EnvironmentStack(testApp(LAB_ZONES), 'Slipway-lab-us-west-2', { spec, env: ENV });
  return Template.fromStack(stack).toJSON() as SynthesisedTemplate;
}

/** The environment of a file in us-west-2; undefined where a rule refuses the file. */
export function specOfFile(values: EnvironmentValues): EnvironmentSpec | undefined {
  const { value, issues } = loadEnvironment(JSON.stringify({ name: 'lab', regions: { 'us-west-2': {} }, ...values }));
  if (!value) throw new Error(`${JSON.stringify(values)}: ${JSON.stringify(issues)}`);
  if (checkEnvironment(value).some(({ level }) => level === 'error')) return undefined;
  return resolveEnvironments(value)[0];
}

/** One option of the environment file and values that it may take, as changes to a whole file. */
export interface Variation {
  option: string;
  values: readonly EnvironmentValues[];
}

const ZONE_IDS = (...zones: number[]) => ({ network: { availabilityZoneIds: zones.map((n) => `usw2-az${n}`) } });
const EXISTING = {
  vpcId: 'vpc-0123456789abcdef0',
  subnetIds: ['subnet-0123456789abcdef0'],
  securityGroupIds: ['sg-0123456789abcdef0'],
};
const FSX = { sizeGiB: 1200, zoneId: 'usw2-az2' };
const OWN_IMAGE = '111122223333.dkr.ecr.us-west-2.amazonaws.com/own:1';
const TRAINING_PLAN = 'arn:aws:sagemaker:us-west-2:111122223333:training-plan/nlp';
const MLFLOW = 'arn:aws:sagemaker:us-west-2:111122223333:mlflow-tracking-server/shared';
const OWN_KEY = 'arn:aws:kms:us-west-2:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab';
const ADMIN = 'arn:aws:iam::111122223333:role/admin';

/** Every option of the schema below its section, with values that differ in what they make. */
export const VARIATIONS: readonly Variation[] = [
  { option: 'network.mode', values: [{ network: { mode: 'vpc-nat' } }, { network: { mode: 'none' } }] },
  { option: 'network.existing', values: [{ network: { mode: 'existing', existing: EXISTING } }] },
  { option: 'network.availabilityZoneIds', values: [ZONE_IDS(2), ZONE_IDS(3, 2), ZONE_IDS(1, 2, 3)] },
  {
    option: 'network.endpoints',
    values: [{ network: { endpoints: ['sts'] } }, { network: { endpoints: ['sts', 'logs'] } }],
  },
  {
    option: 'network.packages',
    values: [
      { network: { packages: 'codeartifact', codeArtifact: { domain: 'ml', repository: 'pypi' } } },
      { network: { packages: 'wheels', wheels: 's3://wheels/all/' } },
    ],
  },
  { option: 'network.wheels', values: [{ network: { packages: 'wheels', wheels: 's3://wheels/new/' } }] },
  {
    option: 'network.codeArtifact',
    values: [{ network: { packages: 'codeartifact', codeArtifact: { domain: 'ml', repository: 'other' } } }],
  },
  { option: 'storage.retain', values: [{ storage: { retain: false } }] },
  { option: 'storage.adopt', values: [{ storage: { adopt: true } }] },
  { option: 'storage.runRetentionDays', values: [{ storage: { runRetentionDays: 30 } }] },
  { option: 'storage.checkpointExpirationDays', values: [{ storage: { checkpointExpirationDays: 7 } }] },
  {
    option: 'storage.buckets',
    values: [
      { storage: { buckets: { data: 'company-data', checkpoints: 'company-checkpoints' } } },
      { storage: { buckets: { data: 'company-data' } } },
    ],
  },
  { option: 'storage.kmsKeyArn', values: [{ storage: { kmsKeyArn: OWN_KEY } }] },
  { option: 'storage.external', values: [{ storage: { external: [{ s3: 's3://lake/tokens/' }] } }] },
  {
    option: 'storage.fsxLustre',
    values: [
      { storage: { fsxLustre: FSX } },
      { storage: { fsxLustre: { ...FSX, sizeGiB: 2400, throughputMBpsPerTiB: 500 } } },
    ],
  },
  {
    option: 'storage.fileSystems',
    values: [{ storage: { fileSystems: { home: { efs: 'fs-0123456789abcdef0', directoryPath: '/' } } } }],
  },
  { option: 'image.base', values: [{ image: { base: 'smp-2.8.0' } }] },
  { option: 'image.build', values: [{ image: { build: true } }] },
  { option: 'image.uri', values: [{ image: { uri: OWN_IMAGE } }] },
  { option: 'image.encryption', values: [{ image: { encryption: 'aes256' } }] },
  { option: 'quotas.enforce', values: [{ quotas: { enforce: 'warn' } }] },
  { option: 'quotas.requestIncrease', values: [{ quotas: { requestIncrease: true } }] },
  { option: 'quotas.require', values: [{ quotas: { require: [{ instanceType: 'ml.p5.48xlarge', count: 2 }] } }] },
  { option: 'guardrails.allowedInstanceTypes', values: [{ guardrails: { allowedInstanceTypes: ['ml.p5.48xlarge'] } }] },
  { option: 'guardrails.maxInstancesPerRun', values: [{ guardrails: { maxInstancesPerRun: 4 } }] },
  { option: 'guardrails.maxConcurrentInstances', values: [{ guardrails: { maxConcurrentInstances: 8 } }] },
  { option: 'guardrails.maxCostPerRunUsd', values: [{ guardrails: { maxCostPerRunUsd: 1000 } }] },
  { option: 'guardrails.maxRuntimeSeconds', values: [{ guardrails: { maxRuntimeSeconds: 3600 } }] },
  { option: 'guardrails.allowedImages', values: [{ guardrails: { allowedImages: ['environment', 'dlc', 'smp'] } }] },
  { option: 'guardrails.requireNetworkIsolation', values: [{ guardrails: { requireNetworkIsolation: true } }] },
  { option: 'guardrails.allowRemoteDebug', values: [{ guardrails: { allowRemoteDebug: true } }] },
  {
    option: 'teams',
    values: [
      { teams: { nlp: { principals: [ADMIN] }, speech: {} } },
      { teams: { nlp: { share: 2 } } },
      { teams: { nlp: { budgetUsdPerMonth: 5000, notifications: { emails: ['a@example.com'] } }, speech: {} } },
      { teams: { nlp: { mlflow: [MLFLOW] } } },
      { teams: { nlp: { trainingPlans: [TRAINING_PLAN] }, speech: {} } },
      { teams: { nlp: { dashboards: true } } },
      { teams: { nlp: { kmsKey: 'own' } } },
      {
        teams: {
          nlp: {
            notifications: {
              emails: ['a@example.com'],
              slackChannel: { workspaceId: 'T0123ABCD', channelId: 'C4567EFGH' },
            },
          },
        },
      },
    ],
  },
  { option: 'access.platformAdmins', values: [{ access: { platformAdmins: [ADMIN] } }] },
  { option: 'access.auditors', values: [{ access: { auditors: [ADMIN] } }] },
  { option: 'access.ci', values: [{ access: { ci: [ADMIN] } }] },
  { option: 'prices', values: [{ prices: { 'ml.p5.48xlarge': 40 } }] },
  {
    option: 'budget',
    values: [
      { budget: { monthlyUsd: 1000, emails: ['a@example.com'] } },
      { budget: { monthlyUsd: 2000, emails: ['a@example.com'] } },
      { budget: { monthlyUsd: 2000, emails: ['a@example.com', 'b@example.com'], thresholdsPercent: [90] } },
    ],
  },
  { option: 'notifications.docsUrl', values: [{ notifications: { docsUrl: 'https://docs.example.com/slipway' } }] },
  { option: 'notifications.emails', values: [{ notifications: { emails: ['a@example.com'] } }] },
  {
    option: 'notifications.slackChannel',
    values: [
      { notifications: { slackChannel: { workspaceId: 'T0123ABCD', channelId: 'C0123ABCD' } } },
      { notifications: { slackChannel: { workspaceId: 'T0123ABCD', channelId: 'C4567EFGH' } } },
    ],
  },
  { option: 'queue.backend', values: [{ queue: { backend: 'slipway' } }] },
  { option: 'queue.preemption', values: [{ queue: { preemption: { afterMinutes: 0 } } }] },
  { option: 'network.cidr', values: [{ network: { cidr: '10.80.0.0/18' } }] },
  { option: 'iam.permissionsBoundary', values: [{ iam: { permissionsBoundary: 'ml-boundary' } }] },
  { option: 'iam.rolePath', values: [{ iam: { rolePath: '/ml/' } }, { iam: { rolePath: '/other/' } }] },
  { option: 'iam.rolePrefix', values: [{ iam: { rolePrefix: 'acme-' } }] },
  { option: 'tags', values: [{ tags: { CostCenter: '1234' } }] },
  {
    option: 'iam.oidcProvider',
    values: [
      {
        iam: {
          oidcProvider: 'arn:aws:iam::111122223333:oidc-provider/gitlab.com',
          oidcSubjects: ['project_path:a/b:*'],
        },
      },
    ],
  },
  {
    option: 'iam.oidcSubjects',
    values: [
      {
        iam: {
          oidcProvider: 'arn:aws:iam::111122223333:oidc-provider/gitlab.com',
          oidcSubjects: ['project_path:c/d:*'],
        },
      },
    ],
  },
  { option: 'network.reserved', values: [{ network: { reserved: ['10.0.0.0/16'] } }] },
  {
    option: 'secrets.allowedPrefix',
    values: [{ secrets: { allowedPrefix: 'slipway/{team}/' }, network: { endpoints: ['secretsmanager'] } }],
  },
  { option: 'logging.kms', values: [{ logging: { kms: false } }] },
  { option: 'logging.retentionDays', values: [{ logging: { retentionDays: 365 } }] },
  { option: 'protection.tableDeletionProtection', values: [{ protection: { tableDeletionProtection: true } }] },
  { option: 'protection.terminationProtection', values: [{ protection: { terminationProtection: false } }] },
];

/** Whole files that the options are varied in. */
export const CONTEXTS: readonly EnvironmentValues[] = [
  {},
  { network: { mode: 'vpc-nat', availabilityZoneIds: ['usw2-az2', 'usw2-az4'] }, teams: { nlp: {}, speech: {} } },
  {
    network: { availabilityZoneIds: ['usw2-az2'] },
    storage: { fsxLustre: FSX },
    budget: { monthlyUsd: 100, emails: ['z@example.com'] },
  },
  { network: { mode: 'none' }, image: { uri: OWN_IMAGE }, storage: { retain: false } },
];

/**
 * The part of the family that one run judges: a synthesis takes a third of a second, and all of them minutes. `SLIPWAY_LAWS=all` takes
 * all, another seed another part.
 */
export function partOfFamily(seed: number): { context: EnvironmentValues; variations: readonly Variation[] }[] {
  if (process.env.SLIPWAY_LAWS === 'all') return CONTEXTS.map((context) => ({ context, variations: VARIATIONS }));
  const [context = {}] = fc.sample(fc.constantFrom(...CONTEXTS), { seed, numRuns: 1 });
  const changing = VARIATIONS.filter(({ option }) => OPTION_CHANGES.some((row) => row.option === option));
  const [some = []] = fc.sample(fc.shuffledSubarray([...changing], { minLength: 3, maxLength: 3 }), {
    seed,
    numRuns: 1,
  });
  const others = VARIATIONS.filter((variation) => !changing.includes(variation));
  const [more = []] = fc.sample(fc.shuffledSubarray(others, { minLength: 3, maxLength: 3 }), { seed, numRuns: 1 });
  return [{ context, variations: [...some, ...more] }];
}

/** A file with the options of another one in the place of its own, section by section. */
export function merged(file: EnvironmentValues, change: EnvironmentValues): EnvironmentValues {
  const sections = Object.entries(change).map(([name, section]) => {
    const isWhole = name === 'teams' || name === 'prices' || name === 'budget';
    return [name, isWhole ? section : { ...(file[name] as object), ...(section as object) }];
  });
  return { ...file, ...Object.fromEntries(sections) };
}

/** Files that each change one option of one context, drawn from all of them. */
export function drawnFiles(seed: number, count: number): EnvironmentValues[] {
  const changes = VARIATIONS.flatMap(({ values }) => [...values]);
  const file = fc.tuple(fc.constantFrom(...CONTEXTS), fc.constantFrom(...changes));
  return fc.sample(file, { seed, numRuns: count }).map(([context, change]) => merged(context, change));
}
