import { baseImageContents } from '../../../lib/core/catalog/images/images';
import { type Descriptor, descriptorSchema } from '../../../lib/core/config/descriptor';
import type { EnvironmentSpec } from '../../../lib/core/config/environment-file';
import { controlAliasName, descriptorParameter } from '../../../lib/core/contracts/launcher';

/** Names of the resources that a stack of the environment would have created. */
export interface Deployed {
  account: string;
  queueUrl: string;
  topicArn: string;
  /** Topics of chat channels by team; '' = that of the environment. */
  chatTopics: Readonly<Record<string, string>>;
  tableName: string;
  assetBucket: string;
  aliasArn(team: string): string;
  jobArn(name: string, kind: 'training' | 'processing'): string;
}

/** Names and ARNs of a deployed environment, as its stack makes them. */
export function deployed(spec: EnvironmentSpec): Deployed {
  const { name, region, account = '111122223333', notifications, teams } = spec;
  const byTeam = new Map([
    ['', notifications],
    ...Object.entries(teams).map(([team, own]) => [team, own.notifications] as const),
  ]);
  const chatting = [...byTeam].flatMap(([team, own]) => (own?.slackChannel ? [team] : []));
  return {
    account,
    queueUrl: `https://sqs.${region}.amazonaws.com/${account}/slipway-${name}.fifo`,
    topicArn: `arn:aws:sns:${region}:${account}:slipway-${name}`,
    chatTopics: Object.fromEntries(
      chatting.map((team) => [team, `arn:aws:sns:${region}:${account}:slipway-${name}-chat${team && `-${team}`}`]),
    ),
    tableName: `slipway-${name}-runs`,
    assetBucket: `assets-${account}-${region}`,
    aliasArn: (team) =>
      `arn:aws:lambda:${region}:${account}:function:slipway-${name}-control:${controlAliasName(team)}`,
    jobArn: (job, kind) => `arn:aws:sagemaker:${region}:${account}:${kind}-job/${job}`,
  };
}

/** The descriptor of each team, as the stack writes it (lib/cdk/environment-stack.ts). */
export function descriptorsOf(spec: EnvironmentSpec): Map<string, Descriptor> {
  return new Map(Object.keys(spec.teams).map((team) => [team, descriptorOf(spec, team)]));
}

/** The SSM parameters of a deployed environment, by name. */
export const parametersOf = (
  spec: EnvironmentSpec,
  descriptors: ReadonlyMap<string, Descriptor>,
): Map<string, string> =>
  new Map(
    [...descriptors].map(([team, descriptor]) => [descriptorParameter(spec.name, team), JSON.stringify(descriptor)]),
  );

function descriptorOf(spec: EnvironmentSpec, team: string): Descriptor {
  const { name, region, network, image, storage } = spec;
  const names = deployed(spec);
  const { account } = names;
  const usdPerMonth = spec.teams[team]?.budgetUsdPerMonth;
  const bucket = (what: string) => `slipway-${name}-${what}-${account}-${region}`;
  const role = (what: string) => `arn:aws:iam::${account}:role/slipway-${name}-${team}-${what}-${region}`;
  const isInVpc = network.mode !== 'none';
  return descriptorSchema.parse({
    schemaVersion: 1,
    name,
    team,
    account,
    region,
    executionRoleArn: role('execution'),
    processingRoleArn: role('processing'),
    dataBucket: bucket('data'),
    checkpointBucket: bucket('checkpoints'),
    artifactBucket: bucket('artifacts'),
    kmsKeyArn: `arn:aws:kms:${region}:${account}:key/00000000-0000-4000-8000-000000000000`,
    subnetIds: isInVpc ? ['subnet-00000000000000001'] : [],
    securityGroupIds: isInVpc ? ['sg-00000000000000001'] : [],
    network: { mode: network.mode, packages: network.packages, wheels: network.wheels },
    fileSystems: fileSystemsOf(spec),
    external: storage.external,
    trainingImageUri:
      image.uri ?? `${account}.dkr.ecr.${region}.amazonaws.com/slipway-${name}@sha256:${'0'.repeat(64)}`,
    image: image.uri ? undefined : baseImageContents(image.base),
    prices: spec.prices,
    budget: usdPerMonth === undefined ? undefined : { usdPerMonth },
    tags: spec.tags,
    runTableName: names.tableName,
    guardrails: spec.guardrails,
    controlAliasArn: names.aliasArn(team),
    driver: { uri: `s3://${bucket('artifacts')}/drivers/000000000000/`, hash: '000000000000' },
  });
}

function fileSystemsOf({ storage: { fsxLustre, fileSystems } }: EnvironmentSpec) {
  if (!fsxLustre) return fileSystems;
  const made = { id: 'fs-00000000000000001', fsxLustre: 'fs-00000000000000001', directoryPath: '/fsx' };
  return { fsx: made, ...fileSystems };
}
