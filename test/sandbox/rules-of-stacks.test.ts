// Rules of CloudFormation and of what it makes, each with the rules and without them: without its rule a test fails.

import { UpdateStackCommand } from '@aws-sdk/client-cloudformation';
import {
  CloudWatchLogsClient,
  DescribeLogGroupsCommand,
  FilterLogEventsCommand,
} from '@aws-sdk/client-cloudwatch-logs';
import { CreateSubnetCommand, CreateVpcCommand, EC2Client } from '@aws-sdk/client-ec2';
import { ECRClient, PutImageCommand } from '@aws-sdk/client-ecr';
import { CreateRoleCommand, IAMClient, PutRolePolicyCommand } from '@aws-sdk/client-iam';
import { InvokeCommand, LambdaClient } from '@aws-sdk/client-lambda';
import { PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { GetParameterCommand, PutParameterCommand, SSMClient } from '@aws-sdk/client-ssm';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { errorOf, policy, type Resources, RuleWorlds, removed, roleFor, stack, updated } from './rule-worlds';

const worlds = new RuleWorlds();
beforeAll(() => worlds.open(), 180_000);
afterAll(() => worlds.close());

const subnets = (vpc: string, ...blocks: string[]): Resources => ({
  Vpc: { Type: 'AWS::EC2::VPC', Properties: { CidrBlock: vpc } },
  ...Object.fromEntries(
    blocks.map((CidrBlock, i) => [
      `Subnet${i}`,
      {
        Type: 'AWS::EC2::Subnet',
        DependsOn: i > 0 ? `Subnet${i - 1}` : [],
        Properties: { VpcId: { Ref: 'Vpc' }, CidrBlock },
      },
    ]),
  ),
});

const longPolicy = (characters: number) =>
  policy({
    Action: 's3:GetObject',
    Resource: Array.from({ length: characters / 40 }, (_, i) => `arn:aws:s3:::bucket/${String(i).padStart(18, '0')}`),
  });

test('bucket-not-empty: a stack whose bucket holds an object ends in DELETE_FAILED and takes no update then', async () => {
  const { applied, off } = await worlds.both(async (world) => {
    const bucket = { Type: 'AWS::S3::Bucket', Properties: { BucketName: 'full' } };
    const made = await stack(world, 'full', { Bucket: bucket });
    await new S3Client(world.options).send(new PutObjectCommand({ Bucket: 'full', Key: 'a', Body: 'x' }));
    const end = await removed(world, made.id);
    const TemplateBody = JSON.stringify({ Resources: { Bucket: bucket, Queue: { Type: 'AWS::SQS::Queue' } } });
    const update = world.cloudformation.send(new UpdateStackCommand({ StackName: made.id, TemplateBody }));
    return {
      status: end.status,
      reasons: end.reasons.join(),
      update: await update.then(
        () => '',
        (e: Error) => e.message,
      ),
    };
  });
  expect(applied.status).toBe('DELETE_FAILED');
  expect(applied.reasons).toContain('BucketNotEmpty');
  expect(applied.update).toContain('is in DELETE_FAILED state and cannot be updated');
  expect(off.status).toBe('DELETE_COMPLETE');
});

test.each([
  ['AWS::ECR::Repository', { RepositoryName: 'kept' }],
  ['AWS::Logs::LogGroup', { LogGroupName: '/kept' }],
  ['AWS::IAM::Role', { ...roleFor('lambda.amazonaws.com').Properties, RoleName: 'kept' }],
  ['AWS::SQS::Queue', { QueueName: 'kept' }],
  ['AWS::KMS::Alias', { AliasName: 'alias/kept', TargetKeyId: { 'Fn::GetAtt': ['Key', 'Arn'] } }],
])('name-collisions: a retained %s keeps its name from the next stack', async (Type, Properties) => {
  const key: Resources =
    Type === 'AWS::KMS::Alias' ? { Key: { Type: 'AWS::KMS::Key', Properties: { KeyPolicy: {} } } } : {};
  const { applied, off } = await worlds.both(async (world) => {
    const resources = { ...key, Kept: { Type, Properties, DeletionPolicy: 'Retain' } };
    const name = Type.replaceAll('::', '-');
    await removed(world, (await stack(world, `${name}-first`, resources)).id);
    return stack(world, `${name}-second`, resources);
  });
  expect(applied).toMatchObject({ status: 'ROLLBACK_COMPLETE' });
  expect(applied.reasons.join()).toMatch(/already exists.*AlreadyExists/);
  expect(off.status).toBe('CREATE_COMPLETE');
});

test.each([
  ['overlaps another one', ['10.64.0.0/19', '10.64.0.0/28'], 'InvalidSubnet.Conflict'],
  ['lies outside of the VPC', ['10.65.0.0/19'], 'InvalidSubnet.Range'],
  ['has fewer than 16 addresses', ['10.64.0.0/29'], 'InvalidSubnet.Range'],
])('subnet-ranges: a subnet that %s is refused', async (_, blocks, code) => {
  const name = `net-${blocks.join('-').replaceAll(/[./]/g, '-')}`;
  const { applied, off } = await worlds.both((world) => stack(world, name, subnets('10.64.0.0/16', ...blocks)));
  expect(applied.reasons[0]).toContain(code);
  expect(off.status).toBe('CREATE_COMPLETE');
});

test('subnet-zones: a subnet that is placed by zone id says the id', async () => {
  const { applied, off } = await worlds.both(async (world) => {
    const zone = { AvailabilityZoneId: 'use1-az2', VpcId: { Ref: 'Vpc' }, CidrBlock: '10.64.32.0/19' };
    const resources = { ...subnets('10.64.0.0/16'), Subnet0: { Type: 'AWS::EC2::Subnet', Properties: zone } };
    const Value = { 'Fn::GetAtt': ['Subnet0', 'AvailabilityZoneId'] };
    const Zone = { Type: 'AWS::SSM::Parameter', Properties: { Name: '/zone', Type: 'String', Value } };
    const { status } = await stack(world, 'zones', { ...resources, Zone });
    if (status !== 'CREATE_COMPLETE') return status;
    return (await new SSMClient(world.options).send(new GetParameterCommand({ Name: '/zone' }))).Parameter?.Value;
  });
  expect(applied).toBe('use1-az2');
  expect(off).not.toBe('use1-az2');
});

test('subnet-ranges: the call refuses what the stack refuses', async () => {
  const { applied, off } = await worlds.both(async ({ options }) => {
    const ec2 = new EC2Client(options);
    const { Vpc } = await ec2.send(new CreateVpcCommand({ CidrBlock: '10.1.0.0/16' }));
    const subnet = (CidrBlock: string) => ec2.send(new CreateSubnetCommand({ VpcId: Vpc?.VpcId, CidrBlock }));
    await subnet('10.1.0.0/20');
    return [
      await errorOf(subnet('10.1.8.0/24')),
      await errorOf(subnet('10.2.0.0/24')),
      await errorOf(ec2.send(new CreateVpcCommand({ CidrBlock: '10.0.0.0/8' }))),
    ];
  });
  expect(applied).toEqual(['InvalidSubnet.Conflict', 'InvalidSubnet.Range', 'InvalidVpc.Range']);
  expect(off).toEqual(['accepted', 'accepted', 'accepted']);
});

test.each([
  ['inline policies of a role', roleFor('lambda.amazonaws.com', longPolicy(11_000).Statement), '10240'],
  ['managed policy', { Type: 'AWS::IAM::ManagedPolicy', Properties: { PolicyDocument: longPolicy(7_000) } }, '6144'],
  ['parameter', { Type: 'AWS::SSM::Parameter', Properties: { Type: 'String', Value: 'x'.repeat(4_097) } }, '4096'],
  [
    'bucket policy',
    { Type: 'AWS::S3::BucketPolicy', Properties: { Bucket: 'any', PolicyDocument: longPolicy(22_000) } },
    '20480',
  ],
])('size-limits: a stack with a %s above the limit is refused', async (what, resource, limit) => {
  const { applied, off } = await worlds.both((world) => stack(world, what.replaceAll(' ', '-'), { Large: resource }));
  expect(applied).toMatchObject({ status: 'ROLLBACK_COMPLETE' });
  expect(applied.reasons[0]).toContain(limit);
  expect(off.status).toBe('CREATE_COMPLETE');
});

test('size-limits: calls to IAM and Parameter Store are refused above the limit', async () => {
  const { applied, off } = await worlds.both(async (world) => {
    await stack(world, 'role', { Role: roleFor('lambda.amazonaws.com', longPolicy(6_000).Statement, 'half-full') });
    const PolicyDocument = JSON.stringify(longPolicy(6_000));
    const put = new PutRolePolicyCommand({ RoleName: 'half-full', PolicyName: 'more', PolicyDocument });
    const value = new PutParameterCommand({ Name: '/long', Type: 'String', Value: 'x'.repeat(4_097) });
    return [
      await errorOf(new IAMClient(world.options).send(put)),
      await errorOf(new SSMClient(world.options).send(value)),
    ];
  });
  expect(applied).toEqual(['LimitExceededException', 'ValidationException']);
  expect(off).toEqual(['accepted', 'accepted']);
});

const INLINE = (text: string) => `
const http = require('http');
exports.handler = async (event) => {
  const body = JSON.stringify({ Status: 'SUCCESS', PhysicalResourceId: 'x', StackId: event.StackId, RequestId: event.RequestId,
    LogicalResourceId: event.LogicalResourceId, Data: event.RequestType === 'Create' ? { Text: ${text} } : {} });
  await new Promise((resolve) => http.request(event.ResponseURL, { method: 'PUT' }, resolve).end(body));
};`;

const answering = (characters: number, variables: Record<string, string> = {}): Resources => ({
  Role: roleFor('lambda.amazonaws.com'),
  Function: {
    Type: 'AWS::Lambda::Function',
    Properties: {
      Runtime: 'nodejs24.x',
      Handler: 'index.handler',
      Role: { 'Fn::GetAtt': ['Role', 'Arn'] },
      Code: { ZipFile: INLINE(`'x'.repeat(${characters})`) },
      Environment: { Variables: variables },
    },
  },
  Answer: { Type: 'Custom::Answer', Properties: { ServiceToken: { 'Fn::GetAtt': ['Function', 'Arn'] } } },
});

test('custom-resource-answers: an answer of more than 4,096 bytes fails the resource', async () => {
  const long = await worlds.both((world) => stack(world, 'long-answer', answering(4_096)));
  expect(long.applied.reasons[0]).toContain('Response object is too long');
  expect(long.off.status).toBe('CREATE_COMPLETE');
  const short = await worlds.both((world) => stack(world, 'short-answer', answering(3_000)));
  expect(short.applied.status).toBe('CREATE_COMPLETE');
});

test('size-limits: the environment of a function has at most 4 KB', async () => {
  const { applied, off } = await worlds.both((world) =>
    stack(world, 'environment', answering(1, { LONG: 'x'.repeat(4_090) })),
  );
  expect(applied.reasons[0]).toContain('exceeded the 4096-byte limit');
  expect(off.status).toBe('CREATE_COMPLETE');
});

/** A custom resource whose physical id is its value, and whose function writes each event into a log. */
const RENAMED = `
const http = require('http');
exports.handler = async (event) => {
  const { Value } = event.ResourceProperties;
  console.log('seen ' + [event.RequestType, event.PhysicalResourceId, event.OldResourceProperties?.Value, Value].join(' '));
  const body = JSON.stringify({ ...event, ResponseURL: undefined, Status: 'SUCCESS',
    PhysicalResourceId: event.RequestType === 'Delete' ? event.PhysicalResourceId : Value });
  await new Promise((resolve) => http.request(event.ResponseURL, { method: 'PUT' }, resolve).end(body));
};`;

test('replaced-rollbacks: a rollback updates a replaced custom resource back, and then deletes what the update made', async () => {
  const logGroupName = '/fn/renamed';
  const { applied, off } = await worlds.both(async (world) => {
    const { Role, Function: fn } = answering(1) as unknown as Record<string, { Properties: object }>;
    const resources = (Value: string, more: Resources = {}): Resources => ({
      Role: { ...Role },
      Log: { Type: 'AWS::Logs::LogGroup', Properties: { LogGroupName: logGroupName } },
      Function: {
        ...fn,
        Properties: { ...fn?.Properties, Code: { ZipFile: RENAMED }, LoggingConfig: { LogGroup: { Ref: 'Log' } } },
      },
      Answer: {
        Type: 'Custom::Answer',
        Properties: { ServiceToken: { 'Fn::GetAtt': ['Function', 'Arn'] }, Value },
      },
      ...more,
    });
    const { id } = await stack(world, 'renamed', resources('old'));
    const Refused = {
      ...{ Type: 'Custom::Refused', DependsOn: 'Answer' },
      Properties: { ServiceToken: 'arn:aws:lambda:us-east-1:000000000000:function:none' },
    };
    const { status } = await updated(world, id, resources('new', { Refused }));
    const logs = new CloudWatchLogsClient(world.options);
    const { events = [] } = await logs.send(new FilterLogEventsCommand({ logGroupName }));
    const seen = events.flatMap(({ message = '' }) => /seen (.*)/.exec(message)?.[1]?.trim() ?? []);
    return { status, seen };
  });
  expect(applied).toEqual({
    status: 'UPDATE_ROLLBACK_COMPLETE',
    seen: ['Create   old', 'Update old old new', 'Update new new old', 'Delete new  new'],
  });
  expect(off.seen).toEqual(['Create   old', 'Update old old new', 'Delete new  new']);
});

// What MiniStack keeps by itself: no rule of ours, but a version that loses it would be noticed here.

test('a rollback deletes what is RetainExceptOnCreate, and leaves what is Retain', async () => {
  const group = (LogGroupName: string, DeletionPolicy: string) => ({
    Type: 'AWS::Logs::LogGroup',
    DeletionPolicy,
    Properties: { LogGroupName },
  });
  const { applied } = await worlds.both(async (world) => {
    const { status } = await stack(world, 'rolled-back', {
      Kept: group('/rolled/kept', 'Retain'),
      Gone: group('/rolled/gone', 'RetainExceptOnCreate'),
      Refused: {
        Type: 'AWS::SSM::Parameter',
        Properties: { Type: 'String', Value: 'x'.repeat(4_097) },
        DependsOn: ['Kept', 'Gone'],
      },
    });
    const logs = new CloudWatchLogsClient(world.options);
    const { logGroups = [] } = await logs.send(new DescribeLogGroupsCommand({ logGroupNamePrefix: '/rolled/' }));
    return { status, left: logGroups.map(({ logGroupName }) => logGroupName) };
  });
  expect(applied).toEqual({ status: 'ROLLBACK_COMPLETE', left: ['/rolled/kept'] });
});

test.each([
  [undefined, 'DELETE_FAILED'],
  [true, 'DELETE_COMPLETE'],
])('a repository with an image and EmptyOnDelete %s ends in %s', async (EmptyOnDelete, status) => {
  const RepositoryName = `images-${EmptyOnDelete ?? false}`;
  const { applied } = await worlds.both(async (world) => {
    const made = await stack(world, RepositoryName, {
      Images: { Type: 'AWS::ECR::Repository', Properties: { RepositoryName, EmptyOnDelete } },
    });
    const imageManifest = JSON.stringify({
      schemaVersion: 2,
      config: { digest: `sha256:${'a'.repeat(64)}` },
      layers: [],
    });
    await new ECRClient(world.options).send(
      new PutImageCommand({ repositoryName: RepositoryName, imageManifest, imageTag: 'x' }),
    );
    return (await removed(world, made.id)).status;
  });
  expect(applied).toBe(status);
});

test('a function ends at its time limit', async () => {
  const { applied } = await worlds.both(async (world) => {
    await stack(world, 'slow', {
      Role: roleFor('lambda.amazonaws.com'),
      Function: {
        Type: 'AWS::Lambda::Function',
        Properties: {
          FunctionName: 'slow',
          Runtime: 'nodejs24.x',
          Handler: 'index.handler',
          Timeout: 1,
          Role: { 'Fn::GetAtt': ['Role', 'Arn'] },
          Code: { ZipFile: 'exports.handler = () => new Promise(() => setInterval(() => {}, 1000));' },
        },
      },
    });
    const { Payload } = await new LambdaClient(world.options).send(new InvokeCommand({ FunctionName: 'slow' }));
    return Buffer.from(Payload ?? []).toString();
  });
  expect(applied).toContain('Task timed out after 1.00 seconds');
});

test('service-role: a stack is made and deleted with the permissions of the role that it was given', async () => {
  const { applied, off } = await worlds.both(async (world) => {
    const iam = new IAMClient(world.options);
    const trust = {
      Version: '2012-10-17',
      Statement: [
        { Effect: 'Allow', Principal: { Service: 'cloudformation.amazonaws.com' }, Action: 'sts:AssumeRole' },
      ],
    };
    const role = { RoleName: 'deploys', AssumeRolePolicyDocument: JSON.stringify(trust) };
    const { Role } = await iam.send(new CreateRoleCommand(role));
    const allowed = (Action: string[]) =>
      iam.send(
        new PutRolePolicyCommand({
          ...{ RoleName: 'deploys', PolicyName: 'own' },
          PolicyDocument: JSON.stringify(policy({ Action, Resource: 'arn:aws:sqs:*:*:jobs-*' })),
        }),
      );
    const queue = (QueueName: string) => ({ Queue: { Type: 'AWS::SQS::Queue', Properties: { QueueName } } });
    await allowed(['sqs:*']);
    const own = await stack(world, 'own', queue('jobs-1'), Role?.Arn);
    const other = await stack(world, 'other', queue('orders'), Role?.Arn);
    await allowed(['sqs:Get*', 'sqs:CreateQueue']);
    return { own, other, kept: await removed(world, own.id) };
  });
  expect([applied.own.status, applied.other.status]).toEqual(['CREATE_COMPLETE', 'ROLLBACK_COMPLETE']);
  expect(applied.other.reasons[0]).toMatch(
    /not authorized to perform: sqs:\w+ on resource: arn:aws:sqs:[\w-]+:\d+:orders.*AccessDenied/,
  );
  expect([applied.kept.status, applied.kept.reasons.join()]).toEqual([
    'DELETE_FAILED',
    expect.stringContaining('sqs:DeleteQueue'),
  ]);
  expect([off.other.status, off.kept.status]).toEqual(['CREATE_COMPLETE', 'DELETE_COMPLETE']);
});
