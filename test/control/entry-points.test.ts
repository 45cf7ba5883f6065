import { CloudFormationClient, DescribeStacksCommand } from '@aws-sdk/client-cloudformation';
import { CloudWatchLogsClient, DescribeLogGroupsCommand } from '@aws-sdk/client-cloudwatch-logs';
import { BatchGetBuildsCommand, CodeBuildClient, StartBuildCommand } from '@aws-sdk/client-codebuild';
import { DescribeTableCommand, DynamoDBClient } from '@aws-sdk/client-dynamodb';
import {
  DescribeSecurityGroupsCommand,
  DescribeSubnetsCommand,
  DescribeVpcsCommand,
  EC2Client,
} from '@aws-sdk/client-ec2';
import { BatchGetImageCommand, DescribeRepositoriesCommand, ECRClient } from '@aws-sdk/client-ecr';
import { DescribeKeyCommand, KMSClient } from '@aws-sdk/client-kms';
import { InvokeCommand, LambdaClient } from '@aws-sdk/client-lambda';
import {
  GetBucketPolicyCommand,
  GetObjectCommand,
  HeadBucketCommand,
  ListObjectVersionsCommand,
  PutBucketPolicyCommand,
  S3Client,
} from '@aws-sdk/client-s3';
import { GetServiceQuotaCommand, ServiceQuotasClient } from '@aws-sdk/client-service-quotas';
import type { AwsStub } from 'aws-sdk-client-mock';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { handler as adoptStorage } from '../../lib/control/adopt-storage';
import { handler as driverPublish } from '../../lib/control/driver-publish';
import { handler as emptyStorage } from '../../lib/control/empty-storage';
import { handler as existingNetwork } from '../../lib/control/existing-network';
import { handler as existingStorage } from '../../lib/control/existing-storage';
import { guardDeps, handler as guards } from '../../lib/control/guards';
import { handler as imageBuild, isCompleteHandler } from '../../lib/control/image-build';
import { handler as logRetention } from '../../lib/control/log-retention';
import { preflightDeps, handler as quotaPreflight } from '../../lib/control/quota-preflight';
import { handler as registeredRun } from '../../lib/control/registered-run';
import { handler as unprotect } from '../../lib/control/unprotect';
import { resourceEvents } from '../support/custom-resource-events';
import { mockClient } from '../support/mocked-clients';

const ENVIRONMENT = { AWS_REGION: 'us-west-2', SLIPWAY_RUN_TABLE: 'slipway-research-runs' };
const [cloudFormation, codebuild, dynamo, ec2, ecr, kms, lambda, logs, quotas, s3] = [
  mockClient(CloudFormationClient),
  mockClient(CodeBuildClient),
  mockClient(DynamoDBClient),
  mockClient(EC2Client),
  mockClient(ECRClient),
  mockClient(KMSClient),
  mockClient(LambdaClient),
  mockClient(CloudWatchLogsClient),
  mockClient(ServiceQuotasClient),
  mockClient(S3Client),
] as const;
// biome-ignore lint/suspicious/noExplicitAny: stubs of clients that have no common type.
const every: readonly AwsStub<any, any, any>[] = [
  ...[cloudFormation, codebuild, dynamo, ec2, ecr, kms, lambda, logs, quotas, s3],
];

beforeEach(() => {
  for (const mock of every) mock.reset();
  vi.stubEnv('AWS_REGION', 'us-west-2');
  vi.stubEnv('SLIPWAY_RUN_TABLE', 'slipway-research-runs');
  vi.stubEnv('AWS_LAMBDA_LOG_GROUP_NAME', '/slipway');
  vi.spyOn(console, 'log').mockImplementation(() => undefined);
  cloudFormation.on(DescribeStacksCommand).resolves({ Stacks: [{ StackStatus: 'UPDATE_COMPLETE' } as never] });
});
afterEach(() => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
});

/** How often the clients that have called may ask. */
const tries = () =>
  Promise.all(every.flatMap((mock) => mock.calls()).map(({ thisValue }) => thisValue.config.maxAttempts()));

const context = {
  invokedFunctionArn: 'arn:aws-cn:lambda:us-west-2:111122223333:function:empty',
  getRemainingTimeInMillis: () => 60_000,
} as never;
const none = resourceEvents('Custom::Slipway', {});
const PLACE = { partition: 'aws', region: 'us-west-2', account: '111122223333', urlSuffix: 'amazonaws.com' };
const answer = (body: unknown) => ({ Payload: Buffer.from(JSON.stringify(body)) as never });

interface EntryPoint {
  call(): Promise<unknown>;
  answers: unknown;
  /** How often its clients may ask. */
  tries: number[];
}

const RESOURCES: Record<string, EntryPoint> = {
  'adopt-storage': {
    call: () => {
      const buckets = JSON.stringify([{ name: 'data', statements: [] }]);
      s3.on(HeadBucketCommand).resolves({});
      dynamo.on(DescribeTableCommand).resolves({});
      ecr.on(DescribeRepositoriesCommand).resolves({});
      const more = {
        buckets,
        keyArn: 'arn:aws:kms:us-west-2:111122223333:key/k',
        tableName: 'runs',
        repositoryName: 'images',
      };
      kms.on(DescribeKeyCommand).resolves({ KeyMetadata: { KeyId: 'k', KeyState: 'Enabled' } });
      return adoptStorage(resourceEvents('Custom::Slipway', more).create());
    },
    answers: { PhysicalResourceId: 'adopted-data' },
    tries: [3],
  },
  'driver-publish': {
    call: () => {
      s3.on(GetObjectCommand).rejects(new Error('no such archive'));
      const source = { sourceBucket: 'assets', sourceKey: 'a.json', bucket: 'artifacts', hash: '0'.repeat(12) };
      return driverPublish(resourceEvents('Custom::Slipway', source).create()).catch((error: Error) => error.message);
    },
    answers: 'no such archive; its log is in log group /slipway',
    tries: [3],
  },
  'empty-storage': {
    call: () => {
      const properties = { bucketNames: '["data"]', when: 'rollback' };
      return emptyStorage(resourceEvents('Custom::Slipway', properties).delete(), context);
    },
    answers: { PhysicalResourceId: 'physical-1' },
    tries: [3],
  },
  'existing-network': {
    call: () => {
      ec2.on(DescribeVpcsCommand).resolves({ Vpcs: [] });
      ec2.on(DescribeSubnetsCommand).resolves({ Subnets: [] });
      ec2.on(DescribeSecurityGroupsCommand).resolves({ SecurityGroups: [] });
      const ids = { vpcId: 'vpc-1', subnetIds: ['subnet-1'], securityGroupIds: ['sg-1'] };
      const needs = { usesEfa: false, addresses: 0, services: [] };
      const network = JSON.stringify({ region: 'us-west-2', account: '111122223333', ...ids, ...needs });
      return existingNetwork(resourceEvents('Custom::Slipway', { network }).create()).catch(
        (error: Error) => error.message.split(';').at(-1) ?? '',
      );
    },
    answers: ' its log is in log group /slipway',
    tries: [3],
  },
  'existing-storage': {
    call: () => {
      s3.on(HeadBucketCommand).rejects(Object.assign(new Error('gone'), { name: 'NotFound' }));
      const properties = { ...PLACE, buckets: '{"data":"lake"}' };
      return existingStorage(resourceEvents('Custom::Slipway', properties).create()).catch(
        (error: Error) => error.message.split(';').at(-1) ?? '',
      );
    },
    answers: ' its log is in log group /slipway',
    tries: [3],
  },
  guards: {
    call: () => guards(resourceEvents('Custom::Slipway', { guards: 'delete', environment: 'research' }).create()),
    answers: { PhysicalResourceId: 'delete-guard-research' },
    tries: [3],
  },
  'image-build': {
    call: () => {
      ecr.rejects(Object.assign(new Error('none'), { name: 'ImageNotFoundException' }));
      ecr.on(BatchGetImageCommand).resolves({ images: [] });
      codebuild.on(StartBuildCommand).resolves({ build: { id: 'project:1' } });
      const properties = { projectName: 'project', repositoryName: 'images', tag: 'abc' };
      return imageBuild(resourceEvents('Custom::Slipway', properties).create());
    },
    answers: { PhysicalResourceId: 'image-images', BuildId: 'project:1' },
    tries: [3],
  },
  'image-build, the question whether it is over': {
    call: () => {
      ecr.on(BatchGetImageCommand).resolves({ images: [] });
      codebuild.on(BatchGetBuildsCommand).resolves({ builds: [{ buildStatus: 'IN_PROGRESS' }] });
      const properties = { projectName: 'project', repositoryName: 'images', tag: 'abc' };
      const event = { ...resourceEvents('Custom::Slipway', properties).create(), BuildId: 'project:1' };
      return isCompleteHandler(event as never);
    },
    answers: { IsComplete: false },
    tries: [3],
  },
  'log-retention': {
    call: () => {
      logs.on(DescribeLogGroupsCommand).resolves({ logGroups: [{ logGroupName: '/a', retentionInDays: 7 }] });
      const properties = { logGroupNames: '["/a"]', retentionDays: '365' };
      return logRetention(resourceEvents('Custom::Slipway', properties).create());
    },
    answers: { PhysicalResourceId: 'shared-log-retention' },
    tries: [3],
  },
  'quota-preflight': {
    call: () => {
      quotas.on(GetServiceQuotaCommand).resolves({ Quota: { Value: 8 } });
      const need = { code: 'L-1', name: 'jobs', needed: 4, unit: 'instances', kind: 'pool', wantedBy: 'x' };
      const properties = {
        environment: 'research',
        needs: JSON.stringify([need]),
        enforce: 'fail',
        requestIncrease: 'false',
      };
      return quotaPreflight(resourceEvents('Custom::Slipway', properties).create());
    },
    answers: expect.objectContaining({ PhysicalResourceId: 'quota-preflight-research' }),
    tries: [8],
  },
  'registered-run': {
    call: () => {
      s3.on(GetObjectCommand).resolves({ Body: { transformToByteArray: async () => Buffer.from('name: x') } as never });
      lambda.on(InvokeCommand).resolves(answer({ ok: true, runId: 'x-1', state: 'queued', uploads: [], issues: [] }));
      const properties = {
        controlAliasArn: 'arn:aws:lambda:us-west-2:111122223333:function:slipway-research-control:team-nlp',
        hash: 'a'.repeat(64),
        assetBucket: 'assets',
        runFileKey: 'run.yaml',
      };
      return registeredRun(resourceEvents('Custom::Slipway', properties).create());
    },
    answers: expect.objectContaining({ Data: { RunId: 'x-1' } }),
    // A start may take control's whole minute: the launcher is asked twice at most.
    tries: [2, 3],
  },
  unprotect: {
    call: () => unprotect(none.delete()),
    answers: { PhysicalResourceId: 'physical-1' },
    tries: [3],
  },
};

test.each(Object.entries(RESOURCES))('%s answers with clients made from the environment', async (_, entry) => {
  expect(await entry.call()).toEqual(entry.answers);
  expect([...new Set(await tries())].sort()).toEqual(entry.tries);
});

test('a bucket that must go is closed in the partition of its function', async () => {
  cloudFormation.on(DescribeStacksCommand).resolves({ Stacks: [{ StackStatus: 'ROLLBACK_IN_PROGRESS' } as never] });
  s3.on(GetBucketPolicyCommand).rejects(Object.assign(new Error('none'), { name: 'NoSuchBucketPolicy' }));
  s3.on(ListObjectVersionsCommand).resolves({});
  await RESOURCES['empty-storage']?.call();
  const [put] = s3.commandCalls(PutBucketPolicyCommand);
  expect(put?.args[0].input.Policy).toContain('arn:aws-cn:s3:::data');
});

test.each([
  ['guards', guardDeps(ENVIRONMENT)],
  [
    'quota-preflight',
    { ...preflightDeps(ENVIRONMENT).clock, now: () => new Date(preflightDeps(ENVIRONMENT).clock.now()) },
  ],
])('%s reads the clock of the machine, and waits on it', async (_, { now, sleep }) => {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.UTC(2026, 10, 21) });
  expect(now()).toEqual(new Date('2026-11-21T00:00:00Z'));
  vi.useRealTimers();
  expect(sleep(1)).toBeInstanceOf(Promise);
});
