// Updates that every custom resource accepts and that then fail elsewhere, on the embedded AWS, which sends the events of a rollback in
// CloudFormation's order: the stack returns to what it was, and takes the next update.
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { CloudFormationClient, paginateDescribeStackEvents, type StackEvent } from '@aws-sdk/client-cloudformation';
import {
  AuthorizeSecurityGroupEgressCommand,
  AuthorizeSecurityGroupIngressCommand,
  CreateSecurityGroupCommand,
  CreateSubnetCommand,
  CreateVpcCommand,
  CreateVpcEndpointCommand,
  DescribeRouteTablesCommand,
  EC2Client,
} from '@aws-sdk/client-ec2';
import { CreateBucketCommand, PutBucketPolicyCommand, PutPublicAccessBlockCommand } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, expect, test } from 'vitest';
import * as CUSTOM_RESOURCES from '../../lib/core/contracts/custom-resources';
import { eventually } from '../../lib/sandbox/testing';
import { type CloudFormationTemplate, Cycle, sections } from '../e2e/support/cycle';
import type { EnvironmentValues } from '../laws/support/family';

const RUN = (name: string) => `name: ${name}
environment: undone/default
code: { source: ./code, entryPoint: wait.py }
compute: { instanceType: ml.m5.xlarge, instanceCount: 1 }
distribution: { launcher: script }
limits: { maxRuntimeSeconds: 86400 }
`;
const quota = (count: number) => ({ quotas: { enforce: 'fail', require: [{ instanceType: 'ml.m5.xlarge', count }] } });
const ZONES = (...ids: string[]) => ({ network: { availabilityZoneIds: ids } });
const BASE: EnvironmentValues = {
  ...ZONES('usw2-az1', 'usw2-az2'),
  ...quota(1),
  storage: { retain: true },
  teams: { default: {}, nlp: {} },
};
const REGISTERED = { runs: [{ file: 'runs/steady.yaml', submit: 'on-change' }] };

let cycle: Cycle;
let before: Record<string, string>;
const writeCode = (text: string) =>
  writeFileSync(
    path.join(cycle.sandbox.folder, 'runs/code/wait.py'),
    `${text}\nimport time\nwhile True:\n    time.sleep(1)\n`,
  );

/** The template with another property on every custom resource. */
function changed(template: CloudFormationTemplate): CloudFormationTemplate {
  const resources = Object.entries(template.Resources).map(([id, resource]) =>
    resource.Type.startsWith('Custom::')
      ? [id, { ...resource, Properties: { ...resource.Properties, Played: 'another' } }]
      : [id, resource],
  );
  return { ...template, Resources: Object.fromEntries(resources) };
}

/** Statuses of custom resources in the last operation on the stack, with their types, oldest first. */
async function lastEvents(): Promise<string[]> {
  const client = new CloudFormationClient(cycle.client());
  const all: StackEvent[] = [];
  for await (const { StackEvents = [] } of paginateDescribeStackEvents({ client }, { StackName: cycle.stackName }))
    all.push(...StackEvents);
  const isBeginning = ({ ResourceStatus, ResourceType }: StackEvent) =>
    ResourceType === 'AWS::CloudFormation::Stack' && ResourceStatus === 'UPDATE_IN_PROGRESS';
  return all
    .slice(0, all.findIndex(isBeginning))
    .filter(({ ResourceType }) => ResourceType?.startsWith('Custom::Slipway'))
    .map(({ ResourceType, ResourceStatus }) => `${ResourceType} ${ResourceStatus}`)
    .reverse();
}

const updated = new Set<string>();
const removed = new Set<string>();

/** Deploys a change that fails at its end; what there was must be there again. */
async function rolledBack(file: EnvironmentValues): Promise<void> {
  cycle.failAtTheEnd(changed(await cycle.synth(sections(file))));
  const { code, said } = await cycle.cdk('deploy');
  expect([code, said.slice(said.indexOf('Failed resources'))]).toEqual([1, expect.stringContaining('guards')]);
  const events = await lastEvents();
  expect([await cycle.status(), events.filter((line) => line.endsWith('FAILED'))]).toEqual([
    'UPDATE_ROLLBACK_COMPLETE',
    [],
  ]);
  expect(await cycle.identities()).toEqual(before);
  for (const [type = '', status] of events.map((line) => line.split(' ')))
    if (status?.startsWith('DELETE')) removed.add(type);
    else if (events.filter((line) => line === `${type} UPDATE_COMPLETE`).length > 1) updated.add(type);
}

/** A VPC of the company with a subnet, a security group whose members reach each other, and a way to S3. */
async function ownNetwork() {
  const ec2 = new EC2Client(cycle.client());
  const { Vpc } = await ec2.send(new CreateVpcCommand({ CidrBlock: '10.20.0.0/16' }));
  const VpcId = Vpc?.VpcId ?? '';
  const place = { VpcId, CidrBlock: '10.20.0.0/20', AvailabilityZone: 'us-west-2a' };
  const { Subnet } = await ec2.send(new CreateSubnetCommand(place));
  const { RouteTables = [] } = await ec2.send(
    new DescribeRouteTablesCommand({ Filters: [{ Name: 'vpc-id', Values: [VpcId] }] }),
  );
  const RouteTableIds = RouteTables.flatMap(({ RouteTableId }) => RouteTableId ?? []);
  await ec2.send(new CreateVpcEndpointCommand({ VpcId, ServiceName: 'com.amazonaws.us-west-2.s3', RouteTableIds }));
  const group = { GroupName: 'training', Description: 'EFA', VpcId };
  const { GroupId = '' } = await ec2.send(new CreateSecurityGroupCommand(group));
  const itself = { GroupId, IpPermissions: [{ IpProtocol: '-1', UserIdGroupPairs: [{ GroupId }] }] };
  await ec2.send(new AuthorizeSecurityGroupIngressCommand(itself));
  await ec2.send(new AuthorizeSecurityGroupEgressCommand(itself));
  return { vpcId: VpcId, subnetIds: [Subnet?.SubnetId ?? ''], securityGroupIds: [GroupId] };
}

/** A bucket of the company that refuses requests without TLS. */
async function ownBucket(): Promise<string> {
  const Bucket = 'company-data';
  const s3 = cycle.s3();
  await s3.send(new CreateBucketCommand({ Bucket, CreateBucketConfiguration: { LocationConstraint: 'us-west-2' } }));
  const PublicAccessBlockConfiguration = {
    ...{ BlockPublicAcls: true, IgnorePublicAcls: true },
    ...{ BlockPublicPolicy: true, RestrictPublicBuckets: true },
  };
  await s3.send(new PutPublicAccessBlockCommand({ Bucket, PublicAccessBlockConfiguration }));
  const Resource = [`arn:aws:s3:::${Bucket}`, `arn:aws:s3:::${Bucket}/*`];
  const withoutTls = { Bool: { 'aws:SecureTransport': 'false' } };
  const Statement = [{ Effect: 'Deny', Principal: '*', Action: 's3:*', Resource, Condition: withoutTls }];
  const Policy = JSON.stringify({ Version: '2012-10-17', Statement });
  await s3.send(new PutBucketPolicyCommand({ Bucket, Policy }));
  return Bucket;
}

beforeAll(async () => {
  cycle = await Cycle.start('undone');
  mkdirSync(path.join(cycle.sandbox.folder, 'runs/code'), { recursive: true });
  writeFileSync(path.join(cycle.sandbox.folder, 'runs/steady.yaml'), RUN('steady'));
  writeCode('# first');
  await cycle.done('deploy', sections({ ...BASE, ...REGISTERED }));
  before = await cycle.identities();
  const isRunning = async () =>
    (await cycle.slipway('list')).runs.some((run: { state: string }) => run.state === 'running');
  await eventually(isRunning, { timeoutSeconds: 120, what: 'the registered run is running' });
});
afterAll(() => cycle?.end());

test('a zone more under a live run, more quotas and other code', async () => {
  writeCode('# second');
  await rolledBack({ ...BASE, ...REGISTERED, ...quota(2), ...ZONES('usw2-az1', 'usw2-az2', 'usw2-az3') });
});

test('a first key of a team, and a team more', async () => {
  const teams = { default: {}, nlp: { kmsKey: 'own' }, vision: { kmsKey: 'own' } };
  await rolledBack({ ...BASE, ...REGISTERED, teams });
});

test('storage that is adopted', async () => {
  await rolledBack({ ...BASE, ...REGISTERED, storage: { retain: true, adopt: true } });
});

test('storage and network that exist', async () => {
  const { vpcId, subnetIds, securityGroupIds } = await ownNetwork();
  const runs = async (): Promise<{ runId: string; state: string }[]> => (await cycle.slipway('list')).runs;
  for (const { runId } of await runs()) await cycle.slipway('stop', runId);
  const isOver = async () => (await runs()).every(({ state }) => state === 'stopped');
  await eventually(isOver, { timeoutSeconds: 120, what: 'the runs are stopped' });
  const bucket = await ownBucket();
  const network = { mode: 'existing', existing: { vpcId, subnetIds, securityGroupIds } };
  await rolledBack({ ...BASE, ...REGISTERED, network });
  await rolledBack({ ...BASE, ...REGISTERED, storage: { retain: true, buckets: { data: bucket } } });
});

test('every type of custom resource but the image build, which the embedded AWS lacks, has taken an update back', async () => {
  const types = Object.entries(CUSTOM_RESOURCES).flatMap(([name, value]) =>
    name.endsWith('_TYPE') ? [value as string] : [],
  );
  const isPlayed = (type: string) => updated.has(type) || removed.has(type);
  expect(types.filter((type) => !isPlayed(type))).toEqual([CUSTOM_RESOURCES.IMAGE_BUILD_TYPE]);
});

test('the same changes go through when nothing else fails', async () => {
  const file = { ...BASE, ...REGISTERED, ...ZONES('usw2-az1', 'usw2-az2', 'usw2-az3') };
  await cycle.done('deploy', sections(file));
  expect(await cycle.identities()).toMatchObject(before);
  await cycle.done('deploy', sections({ ...file, storage: { retain: true, adopt: true } }));
  expect(await cycle.buckets()).toHaveLength(4);
});
