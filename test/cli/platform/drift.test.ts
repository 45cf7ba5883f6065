import {
  CloudFormationClient,
  DescribeStackDriftDetectionStatusCommand,
  DescribeStackResourceDriftsCommand,
  DetectStackDriftCommand,
  GetTemplateCommand,
} from '@aws-sdk/client-cloudformation';
import { CloudWatchLogsClient, DescribeLogGroupsCommand } from '@aws-sdk/client-cloudwatch-logs';
import { DescribeImagesCommand, ECRClient } from '@aws-sdk/client-ecr';
import { DescribeKeyCommand, GetKeyPolicyCommand, KMSClient } from '@aws-sdk/client-kms';
import { GetFunctionConfigurationCommand, LambdaClient } from '@aws-sdk/client-lambda';
import {
  GetBucketEncryptionCommand,
  GetBucketLifecycleConfigurationCommand,
  GetBucketPolicyCommand,
  GetBucketVersioningCommand,
  GetPublicAccessBlockCommand,
  HeadBucketCommand,
  S3Client,
} from '@aws-sdk/client-s3';
import { GetServiceQuotaCommand, ServiceQuotasClient } from '@aws-sdk/client-service-quotas';
import { GetParameterCommand, SSMClient } from '@aws-sdk/client-ssm';
import { beforeEach, describe, expect, test } from 'vitest';
import { driverFiles } from '../../../lib/shared/local/own-package';
import { mockClient } from '../../support/mocked-clients';
import { runCli } from '../../support/run-cli';
import { DESCRIPTOR } from '../../support/runs';

const stacks = mockClient(CloudFormationClient);
const parameters = mockClient(SSMClient);
const functions = mockClient(LambdaClient);
const images = mockClient(ECRClient);
const logs = mockClient(CloudWatchLogsClient);
const quotas = mockClient(ServiceQuotasClient);
const s3 = mockClient(S3Client);
const kms = mockClient(KMSClient);
const NEED = {
  name: 'ml.p5.48xlarge for training job usage',
  code: 'L-C4752B3A',
  needed: 4,
  unit: 'instances',
  kind: 'pool',
  wantedBy: 'quotas.require',
};
const CONTROL = 'arn:aws:lambda:us-west-2:111122223333:function:slipway-lab-control';
const IMAGE = `111122223333.dkr.ecr.us-west-2.amazonaws.com/slipway-lab@sha256:${'a'.repeat(64)}`;

beforeEach(() => {
  for (const mock of [stacks, parameters, functions, images, logs, quotas, s3, kms]) mock.reset();
  storageIsAsItMustBe();
  stacks.on(DetectStackDriftCommand).resolves({ StackDriftDetectionId: 'd' });
  stacks.on(DescribeStackDriftDetectionStatusCommand).resolves({ DetectionStatus: 'DETECTION_COMPLETE' });
  stacks.on(DescribeStackResourceDriftsCommand).resolves({ StackResourceDrifts: [] });
  const gate = { Type: 'Custom::SlipwayQuotaPreflight', Properties: { needs: JSON.stringify([NEED]) } };
  stacks.on(GetTemplateCommand).resolves({ TemplateBody: JSON.stringify({ Resources: { gate } }) });
  parameters.on(GetParameterCommand, { Name: '/slipway/environments/lab' }).resolves({ Parameter: { Value: 'nlp' } });
  const descriptor = {
    ...DESCRIPTOR,
    name: 'lab',
    team: 'nlp',
    region: 'us-west-2',
    trainingImageUri: IMAGE,
    controlAliasArn: `${CONTROL}:nlp`,
    driver: { uri: 's3://b/d/', hash: driverFiles().hash },
  };
  parameters
    .on(GetParameterCommand, { Name: '/slipway/environments/lab/nlp' })
    .resolves({ Parameter: { Value: JSON.stringify(descriptor) } });
  functions.on(GetFunctionConfigurationCommand).resolves({ CodeSha256: 'same', Version: '3' });
  images.on(DescribeImagesCommand).resolves({ imageDetails: [{}] });
  logs.on(DescribeLogGroupsCommand).callsFake(({ logGroupNamePrefix }) => ({
    logGroups: [{ logGroupName: logGroupNamePrefix, retentionInDays: 365 }],
  }));
  quotas.on(GetServiceQuotaCommand).resolves({ Quota: { Value: 4 } });
});

function storageIsAsItMustBe(): void {
  const { account, kmsKeyArn } = DESCRIPTOR;
  s3.on(HeadBucketCommand).resolves({ BucketRegion: 'us-west-2' });
  const applied = { SSEAlgorithm: 'aws:kms' as const, KMSMasterKeyID: kmsKeyArn };
  s3.on(GetBucketEncryptionCommand).resolves({
    ServerSideEncryptionConfiguration: { Rules: [{ ApplyServerSideEncryptionByDefault: applied }] },
  });
  const tls = { Effect: 'Deny', Principal: '*', Action: 's3:*', Resource: '*' };
  const Condition = { Bool: { 'aws:SecureTransport': 'false' } };
  s3.on(GetBucketPolicyCommand).resolves({ Policy: JSON.stringify({ Statement: { ...tls, Condition } }) });
  publicAccess(true);
  s3.on(GetBucketVersioningCommand).resolves({ Status: 'Enabled' });
  s3.on(GetBucketLifecycleConfigurationCommand).resolves({ Rules: [] });
  kms.on(DescribeKeyCommand).resolves({ KeyMetadata: { KeyId: 'k', KeyState: 'Enabled' } });
  const root = { Effect: 'Allow', Principal: { AWS: account }, Action: 'kms:*', Resource: '*' };
  kms.on(GetKeyPolicyCommand).resolves({ Policy: JSON.stringify({ Statement: [root] }) });
}

const publicAccess = (isBlocked: boolean) =>
  s3.on(GetPublicAccessBlockCommand).resolves({
    PublicAccessBlockConfiguration: {
      BlockPublicAcls: isBlocked,
      IgnorePublicAcls: isBlocked,
      BlockPublicPolicy: isBlocked,
      RestrictPublicBuckets: isBlocked,
    },
  });

const drift = async () => {
  const { code, stdout } = await runCli('drift', 'lab', '--region', 'us-west-2', '--json');
  const {
    ok,
    stacks: [stack],
  } = JSON.parse(stdout);
  const beyond = Object.fromEntries(
    stack.beyond.map((one: { what: string; ok: boolean | null }) => [one.what, one.ok]),
  );
  return { code, ok, stack, beyond };
};

test('an environment as it was deployed is exit 0', async () => {
  const { code, ok, stack, beyond } = await drift();
  expect([code, ok, stack.stack, stack.resources]).toEqual([0, true, 'Slipway-lab-us-west-2', []]);
  expect(Object.values(beyond)).toEqual([true, true, true, true, true, true]);
  expect(stacks.commandCalls(GetTemplateCommand)).toHaveLength(1);
});

test('a changed property is exit 1, with the template and the account beside each other', async () => {
  stacks.on(DescribeStackResourceDriftsCommand).resolves({
    StackResourceDrifts: [
      {
        StackId: 's',
        LogicalResourceId: 'JobGroup',
        ResourceType: 'AWS::EC2::SecurityGroup',
        StackResourceDriftStatus: 'MODIFIED',
        Timestamp: new Date(0),
        PropertyDifferences: [
          { PropertyPath: '/SecurityGroupEgress', ExpectedValue: 'a', ActualValue: 'b', DifferenceType: 'NOT_EQUAL' },
        ],
      },
    ],
  });
  const { code, stack } = await drift();
  expect(code).toBe(1);
  expect(stack.resources).toEqual([
    {
      id: 'JobGroup',
      type: 'AWS::EC2::SecurityGroup',
      status: 'MODIFIED',
      differences: [{ path: '/SecurityGroupEgress', expected: 'a', actual: 'b' }],
    },
  ]);
});

test.each<[string, () => void]>([
  ['buckets and key', () => publicAccess(false)],
  ['buckets and key', () => kms.on(DescribeKeyCommand).resolves({ KeyMetadata: { KeyId: 'k', KeyState: 'Disabled' } })],
  ['quotas of the last deploy', () => quotas.on(GetServiceQuotaCommand).resolves({ Quota: { Value: 3 } })],
  [
    'digest of the image',
    () =>
      images.on(DescribeImagesCommand).rejects(Object.assign(new Error('gone'), { name: 'ImageNotFoundException' })),
  ],
  [
    'version of the control function',
    () => functions.on(GetFunctionConfigurationCommand, { FunctionName: CONTROL }).resolves({ CodeSha256: 'other' }),
  ],
  [
    'retention of log groups',
    () =>
      logs
        .on(DescribeLogGroupsCommand)
        .callsFake(({ logGroupNamePrefix }) => ({ logGroups: [{ logGroupName: logGroupNamePrefix }] })),
  ],
])('beyond the template: %s', async (what, change) => {
  change();
  const { code, beyond } = await drift();
  expect([code, beyond[what], Object.values(beyond).filter((ok) => ok === false)]).toEqual([1, false, [false]]);
});

describe('the key of a team', () => {
  const KEY = 'arn:aws:kms:us-west-2:111122223333:key/9999abcd-12ab-34cd-56ef-1234567890ab';
  beforeEach(() => {
    const descriptor = { ...DESCRIPTOR, name: 'lab', team: 'nlp', region: 'us-west-2', teamKeyArn: KEY };
    const answer = { Parameter: { Value: JSON.stringify(descriptor) } };
    parameters.on(GetParameterCommand, { Name: '/slipway/environments/lab/nlp' }).resolves(answer);
  });

  test('is looked at beside that of the environment', async () => {
    expect((await drift()).beyond['keys of teams']).toBe(true);
  });

  test('that is to be deleted differs, by its option', async () => {
    kms.on(DescribeKeyCommand, { KeyId: KEY }).resolves({ KeyMetadata: { KeyId: 'k', KeyState: 'PendingDeletion' } });
    const { stack, beyond } = await drift();
    expect([beyond['keys of teams'], beyond['buckets and key']]).toEqual([false, true]);
    const { detail } = stack.beyond.find(({ what }: { what: string }) => what === 'keys of teams');
    expect(detail).toMatch(/^teams\.nlp\.kmsKey: must be an enabled key, got a key in state PendingDeletion;/);
  });
});

test('what may not be read is unknown and no drift', async () => {
  images.on(DescribeImagesCommand).rejects(Object.assign(new Error('no'), { name: 'AccessDeniedException' }));
  const { code, beyond } = await drift();
  expect([code, beyond['digest of the image']]).toEqual([0, null]);
});

test('fails: an environment without a stack', async () => {
  stacks
    .on(DetectStackDriftCommand)
    .rejects(Object.assign(new Error('Stack [x] does not exist'), { name: 'ValidationError' }));
  const { code, stderr } = await runCli('drift', 'lab', '--region', 'us-west-2');
  expect([code, stderr]).toEqual([2, expect.stringContaining('got no stack Slipway-lab-us-west-2; deploy it first')]);
});

test('fails: a file is no environment name', async () => {
  expect((await runCli('drift', 'environments/lab.yaml', '--region', 'us-west-2')).code).toBe(2);
});

test('a resource that CloudFormation may not read is neither in order nor changed: its words are shown', async () => {
  // As in https://github.com/aws-cloudformation/cloudformation-coverage-roadmap/issues/801.
  const reason =
    '{"Summary":"Failed to detect drift on resources [LauncherControl]","Failures":[{"Resource":"LauncherControl","FailureReason":"is not authorized to perform: lambda:GetFunction"}]}';
  stacks
    .on(DescribeStackDriftDetectionStatusCommand)
    .resolves({ DetectionStatus: 'DETECTION_FAILED', DetectionStatusReason: reason });
  const { code, stack, beyond } = await drift();
  expect([code, stack.resources, beyond['every resource of the stack']]).toEqual([0, [], null]);
  expect(stack.beyond[0].detail).toBe(reason);
  const { stdout } = await runCli('drift', 'lab', '--region', 'us-west-2');
  expect(stdout).toContain(
    'Slipway-lab-us-west-2: matches its template, for the properties that CloudFormation can compare\n',
  );
});
