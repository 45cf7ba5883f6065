// What preflight finds in an account before the first deploy of an environment.
import { CodeBuildClient, ListBuildsCommand } from '@aws-sdk/client-codebuild';
import { DescribeTableCommand, DynamoDBClient } from '@aws-sdk/client-dynamodb';
import {
  DescribeAddressesCommand,
  DescribeAvailabilityZonesCommand,
  DescribeInstanceTypeOfferingsCommand,
  DescribeVpcEndpointServicesCommand,
  DescribeVpcsCommand,
  EC2Client,
} from '@aws-sdk/client-ec2';
import { DescribeRepositoriesCommand, ECRClient } from '@aws-sdk/client-ecr';
import { type EvaluationResult, GetRoleCommand, IAMClient, SimulatePrincipalPolicyCommand } from '@aws-sdk/client-iam';
import { GetAccountSettingsCommand, LambdaClient } from '@aws-sdk/client-lambda';
import { HeadBucketCommand, S3Client } from '@aws-sdk/client-s3';
import {
  GetAWSDefaultServiceQuotaCommand,
  GetServiceQuotaCommand,
  ServiceQuotasClient,
} from '@aws-sdk/client-service-quotas';
import { GetParameterCommand, SSMClient } from '@aws-sdk/client-ssm';
import { GetCallerIdentityCommand, STSClient } from '@aws-sdk/client-sts';
import { beforeEach, expect, test } from 'vitest';
import { parse } from 'yaml';
import { deployChecks } from '../../../lib/cli/environment/checks/first-deploy';
import { specOf } from '../../cdk/support/app';
import { mockClient } from '../../support/mocked-clients';

const clients = {
  builds: mockClient(CodeBuildClient),
  dynamo: mockClient(DynamoDBClient),
  ec2: mockClient(EC2Client),
  ecr: mockClient(ECRClient),
  iam: mockClient(IAMClient),
  lambda: mockClient(LambdaClient),
  s3: mockClient(S3Client),
  quotas: mockClient(ServiceQuotasClient),
  ssm: mockClient(SSMClient),
  sts: mockClient(STSClient),
};
const DEPLOYER = 'arn:aws:iam::111122223333:role/people/Deployer';
/** What IAM's simulation decides on every action. */
const decides = (result: Partial<EvaluationResult>) =>
  clients.iam.on(SimulatePrincipalPolicyCommand).callsFake(({ ActionNames }: { ActionNames: string[] }) => ({
    EvaluationResults: ActionNames.map((EvalActionName) => ({ EvalActionName, ...result })),
  }));
const named = (name: string) => Object.assign(new Error(`got ${name}`), { name });
const ROLE = 'arn:aws:iam::111122223333:role/people/nlp';
const ENVIRONMENT = {
  account: '111122223333',
  teams: { nlp: { principals: [ROLE, 'arn:aws:iam::444455556666:role/of-another-account'] } },
  network: { endpoints: ['ecr', 'sts'] },
  quotas: { require: [{ instanceType: 'ml.p5.48xlarge', count: 1 }] },
};
const zone = (letter: string, id: number) => ({ ZoneName: `us-west-2${letter}`, ZoneId: `usw2-az${id}` });
const ALL = ['us-west-2a', 'us-west-2b'];
/** The services of the endpoints, in these zones. */
const services = (ecr: string[], sts: string[]) => ({
  ServiceDetails: [
    ...['ecr.api', 'ecr.dkr'].map((name) => ({
      ServiceName: `com.amazonaws.us-west-2.${name}`,
      AvailabilityZones: ecr,
    })),
    { ServiceName: 'com.amazonaws.us-west-2.sts', AvailabilityZones: sts },
  ],
});

beforeEach(() => {
  for (const client of Object.values(clients)) client.reset();
  const { builds, dynamo, ec2, ecr, iam, lambda, s3, quotas, ssm, sts } = clients;
  sts.on(GetCallerIdentityCommand).resolves({ Arn: 'arn:aws:sts::111122223333:assumed-role/Deployer/me' });
  decides({ EvalDecision: 'allowed' });
  ssm.on(GetParameterCommand).resolves({ Parameter: { Value: '30' } });
  iam.on(GetRoleCommand).resolves({ Role: { Arn: DEPLOYER } as never });
  lambda.on(GetAccountSettingsCommand).resolves({ AccountLimit: { ConcurrentExecutions: 10 } });
  quotas.on(GetServiceQuotaCommand).resolves({ Quota: { Value: 5 } });
  ec2
    .on(DescribeVpcsCommand)
    .resolves({ Vpcs: [{}] })
    .on(DescribeAddressesCommand)
    .resolves({ Addresses: [] });
  ec2.on(DescribeAvailabilityZonesCommand).resolves({ AvailabilityZones: [zone('a', 2), zone('b', 1)] });
  ec2.on(DescribeVpcEndpointServicesCommand).resolves(services(ALL, ALL));
  ec2.on(DescribeInstanceTypeOfferingsCommand).resolves({
    InstanceTypeOfferings: [{ InstanceType: 'p5.48xlarge', Location: 'usw2-az2' }],
  });
  builds.on(ListBuildsCommand).resolves({ ids: ['slipway:1'] });
  s3.on(HeadBucketCommand).rejects(named('NotFound'));
  dynamo.on(DescribeTableCommand).rejects(named('ResourceNotFoundException'));
  ecr.on(DescribeRepositoriesCommand).rejects(named('RepositoryNotFoundException'));
});

async function messages(more: object = {}, isFirst = true): Promise<string[]> {
  const checks = await deployChecks(specOf({ ...ENVIRONMENT, ...more }), isFirst);
  return checks.flatMap(({ issues }) => issues.map(({ level, message }) => `${level}: ${message}`));
}

test('finds nothing in an account that has everything, and asks every question once', async () => {
  const checks = await deployChecks(specOf(ENVIRONMENT), true);
  expect(checks.flatMap(({ issues }) => issues)).toEqual([]);
  expect(checks.map(({ check }) => check.name)).toEqual([
    ...[
      'CDK bootstrap',
      'deployer permissions',
      'principal nlp',
      'Lambda concurrency',
      'VPC quota',
      'CodeBuild',
      'retained storage',
    ],
    ...['zones of endpoints', 'zones of instance types'],
  ]);
});

test.each([
  ['aws-samples/well-architected-iac-analyzer#27', 's3:PutBucketPublicAccessBlock'],
  ['aws-samples/siem-on-amazon-opensearch-service#205', 's3:PutEncryptionConfiguration'],
])('%s: an organization that denies nothing but %s is a warning', async (_, action) => {
  clients.iam.on(SimulatePrincipalPolicyCommand).callsFake(({ ActionNames }: { ActionNames: string[] }) => ({
    EvaluationResults: ActionNames.map((EvalActionName) => ({
      ...{ EvalActionName, EvalDecision: 'allowed' },
      OrganizationsDecisionDetail: { AllowedByOrganizations: EvalActionName !== action },
    })),
  }));
  const said = (await deployChecks(specOf(ENVIRONMENT), true)).flatMap(({ issues }) => issues);
  expect(said.map(({ message }) => message)).toEqual([
    expect.stringContaining(`got 1 denied actions, such as ${action};`),
  ]);
});

test('does not ask for what a stack already has', async () => {
  const checks = await deployChecks(specOf(ENVIRONMENT), false);
  expect(checks.map(({ check }) => check.name)).not.toContain('VPC quota');
  expect(checks.map(({ check }) => check.name)).not.toContain('retained storage');
});

type Broken = [string, () => void, object, RegExp];
const BROKEN: Broken[] = [
  [
    'an account that was not bootstrapped',
    () => clients.ssm.on(GetParameterCommand).rejects(named('ParameterNotFound')),
    {},
    /^error: account: must be bootstrapped .* got no bootstrap stack; run npx cdk bootstrap aws:\/\/111122223333\/us-west-2$/,
  ],
  [
    'a bootstrap stack of an old version',
    () => clients.ssm.on(GetParameterCommand).resolves({ Parameter: { Value: '5' } }),
    {},
    /got version 5;/,
  ],
  [
    'policies of an organization that deny what a deploy makes',
    () => decides({ EvalDecision: 'explicitDeny', OrganizationsDecisionDetail: { AllowedByOrganizations: false } }),
    {},
    /^warning: account: must be allowed by the service control policies .*, got \d+ denied actions, such as cloudwatch:PutMetricAlarm; ask /,
  ],
  [
    'a caller who may not assume the role with which the CDK deploys',
    () => decides({ EvalDecision: 'implicitDeny' }),
    {},
    /^error: account: must let you assume arn:aws:iam::111122223333:role\/cdk-hnb659fds-deploy-role-111122223333-us-west-2, got implicitDeny for arn:aws:iam::111122223333:role\/people\/Deployer;/,
  ],
  [
    'a caller who may not simulate: unknown',
    () => clients.iam.on(SimulatePrincipalPolicyCommand).rejects(named('AccessDenied')),
    {},
    /^warning: environment: must allow you to read the deployer permissions, got no permission for iam:GetRole and iam:SimulatePrincipalPolicy on yourself;/,
  ],
  [
    'a principal that does not exist',
    () => clients.iam.on(GetRoleCommand, { RoleName: 'nlp' }).rejects(named('NoSuchEntityException')),
    {},
    /^error: teams\.nlp\.principals\[0\]: must be a role or user that exists, got arn:aws:iam::111122223333:role\/people\/nlp;/,
  ],
  [
    'no VPC left, by the default where no value was applied',
    () => {
      clients.quotas.on(GetServiceQuotaCommand).rejects(named('NoSuchResourceException'));
      clients.quotas.on(GetAWSDefaultServiceQuotaCommand).resolves({ Quota: { Value: 5 } });
      clients.ec2.on(DescribeVpcsCommand).resolves({ Vpcs: [{}, {}, {}, {}, {}] });
    },
    {},
    /^error: network\.mode: must leave one of the VPCs .* got 5 of 5 in use; .*--quota-code L-F678F1CE --desired-value 6 /,
  ],
  [
    'no address left for a NAT gateway',
    () => clients.ec2.on(DescribeAddressesCommand).resolves({ Addresses: [{}, {}, {}, {}, {}] }),
    { network: { mode: 'vpc-nat' } },
    /Elastic IP addresses .* got 5 of 5 in use;/,
  ],
  [
    'an account that never built',
    () => clients.builds.on(ListBuildsCommand).resolves({ ids: [] }),
    {},
    /^warning: image\.build: must be allowed by CodeBuild.*Cannot have more than 0 builds in queue.* image: \{ uri:/,
  ],
  [
    'too little concurrency of functions',
    () => clients.lambda.on(GetAccountSettingsCommand).resolves({ AccountLimit: { ConcurrentExecutions: 3 } }),
    {},
    /must allow 10 concurrent calls .* got 3;/,
  ],
  [
    'storage of an earlier stack',
    () => {
      clients.s3.on(HeadBucketCommand).resolves({});
      clients.dynamo.on(DescribeTableCommand).resolves({});
    },
    {},
    /^error: storage\.adopt: must be true .* got bucket slipway-research-111122223333-us-west-2-data, bucket .*; write storage: \{ adopt: true \}/,
  ],
  [
    'a zone without the service of an endpoint',
    () => clients.ec2.on(DescribeVpcEndpointServicesCommand).resolves(services(ALL, ['us-west-2a'])),
    {},
    /^error: network\.availabilityZoneIds: must contain only zones .* got usw2-az1; write network: { availabilityZoneIds: \[usw2-az2\] }$/,
  ],
  [
    'services that no zone has together',
    () => clients.ec2.on(DescribeVpcEndpointServicesCommand).resolves(services(['us-west-2b'], ['us-west-2a'])),
    {},
    /got usw2-az2, usw2-az1; remove a service from network\.endpoints that no zone has together with the others$/,
  ],
  [
    'an instance type that no zone of the network has',
    () => undefined,
    { network: { availabilityZoneIds: ['usw2-az1'] } },
    /must contain a zone with ml\.p5\.48xlarge, got usw2-az1; add usw2-az2$/,
  ],
];

test.each(BROKEN)('says what to do about %s', async (_what, breakIt, more, text) => {
  breakIt();
  expect(await messages(more)).toEqual([expect.stringMatching(text)]);
});

test('the line that is printed about zones of endpoints is one after which nothing is printed', async () => {
  clients.ec2.on(DescribeVpcEndpointServicesCommand).resolves(services(ALL, ['us-west-2a']));
  const [said = ''] = await messages();
  const [, line = ''] = /write (network: .*)$/.exec(said) ?? [];
  const written = parse(line) as { network: object };
  expect(await messages({ network: { ...ENVIRONMENT.network, ...written.network } })).toEqual([]);
});

test('a check that the caller may not make is unknown, and no error', async () => {
  clients.iam.on(GetRoleCommand, { RoleName: 'nlp' }).rejects(named('AccessDeniedException'));
  expect(await messages()).toEqual([expect.stringMatching(/^warning: .* no permission for iam:GetRole on nlp;/)]);
});
