// The templates that the laws are held against: every example environment, and environments that use every option.
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { Template } from 'aws-cdk-lib/assertions';
import { EnvironmentStack } from '../../../lib/cdk';
import { type EnvironmentSpec, resolveEnvironments } from '../../../lib/core/config/environment-file';
import { loadEnvironment } from '../../../lib/core/config/load';
import { ENV, specOf, testApp } from '../../cdk/support/app';
import { onceInRun } from '../../support/once-in-run';
import type { Resources } from './values';

const EXAMPLES = path.join(__dirname, '..', '..', '..', 'environments');
const person = (name: string) => [`arn:aws:iam::111122223333:role/${name}`];
const EVERYONE = {
  teams: {
    nlp: {
      principals: person('nlp'),
      share: 2,
      data: ['tokens/'],
      mlflow: ['mlflow-tracking-server/shared', 'mlflow-app/app-1'].map(
        (name) => `arn:aws:sagemaker:us-west-2:111122223333:${name}`,
      ),
    },
    speech: { principals: person('speech') },
  },
  access: { platformAdmins: person('admin'), auditors: person('auditor'), ci: person('ci') },
};

/** Options that no example uses, in as few environments as they fit into. */
const VARIANTS: Readonly<Record<string, object>> = {
  everything: {
    ...EVERYONE,
    quotas: { require: [{ instanceType: 'ml.p4d.24xlarge', count: 2 }], requestIncrease: true },
    secrets: { allowedPrefix: 'slipway/{team}/' },
    guardrails: {
      allowedInstanceTypes: ['ml.p5*.48xlarge', 'ml.m5.*'],
      maxRuntimeSeconds: 86_400,
      allowRemoteDebug: true,
      requireNetworkIsolation: true,
    },
    budget: { monthlyUsd: 1000, emails: ['a@example.com'] },
    notifications: { emails: ['a@example.com'], slackChannel: { workspaceId: 'T0123ABCD', channelId: 'C0123ABCD' } },
    network: {
      availabilityZoneIds: ['usw2-az1', 'usw2-az2'],
      packages: 'codeartifact',
      codeArtifact: { domain: 'ml', repository: 'pypi' },
    },
    storage: {
      fsxLustre: { sizeGiB: 1200, zoneId: 'usw2-az2' },
      external: [
        {
          s3: 's3://lake/tokens/',
          access: 'read-write',
          kmsKeyArn: 'arn:aws:kms:us-west-2:444455556666:key/00000000-0000-0000-0000-000000000000',
        },
      ],
    },
  },
  existing: {
    ...EVERYONE,
    network: {
      mode: 'existing',
      existing: {
        vpcId: 'vpc-0123456789abcdef0',
        subnetIds: ['subnet-0123456789abcdef0'],
        securityGroupIds: ['sg-0123456789abcdef0'],
      },
    },
    guardrails: { allowedImages: ['dlc', '444455556666.dkr.ecr.us-west-2.amazonaws.com/team/image'] },
  },
  nat: { network: { mode: 'vpc-nat' }, storage: { retain: false } },
  none: { network: { mode: 'none' }, image: { uri: '111122223333.dkr.ecr.us-west-2.amazonaws.com/own@sha256:0' } },
  ownStorage: {
    ...EVERYONE,
    network: { availabilityZoneIds: ['usw2-az2'] },
    storage: {
      buckets: { data: 'company-data', checkpoints: 'company-checkpoints' },
      kmsKeyArn: 'arn:aws:kms:us-west-2:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab',
      fsxLustre: { sizeGiB: 1200, zoneId: 'usw2-az2' },
    },
  },
  adopted: { ...EVERYONE, storage: { adopt: true } },
};

/** The specification of every template, by name; all in us-west-2. */
export function specs(): Record<string, EnvironmentSpec> {
  const examples = readdirSync(EXAMPLES)
    .filter((file) => file.endsWith('.yaml'))
    .map((file) => {
      const { value } = loadEnvironment(readFileSync(path.join(EXAMPLES, file), 'utf8'));
      const spec = value && resolveEnvironments(value).find(({ region }) => region === ENV.region);
      if (!spec) throw new Error(`${file}: has no region ${ENV.region}`);
      return [file, spec] as const;
    });
  const variants = Object.entries(VARIANTS).map(([name, more]) => [name, specOf(more)] as const);
  return Object.fromEntries([...examples, ...variants]);
}

/** Zones of the account, as a deploy looks them up. */
export const ZONES = {
  [`availability-zones:account=${ENV.account}:region=${ENV.region}`]: 'abcd'
    .split('')
    .map((zone) => `us-west-2${zone}`),
};

/** Resources of the stack of one specification; they are shared by all who ask for it. */
export const synthesise = (spec: EnvironmentSpec): Resources => templateOf(spec).Resources;

/** Template of the stack of one specification, synthesised once. */
export const templateOf = (spec: EnvironmentSpec): { Resources: Resources } =>
  onceInRun(
    'template',
    spec,
    () =>
      Template.fromStack(new EnvironmentStack(testApp(ZONES), 'Slipway', { spec, env: ENV })).toJSON() as {
        Resources: Resources;
      },
  );
