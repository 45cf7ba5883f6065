import { rmSync } from 'node:fs';
import { CreateRoleCommand, DeleteRolePolicyCommand, IAMClient, PutRolePolicyCommand } from '@aws-sdk/client-iam';
import { CreateBucketCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import {
  CreateTrainingJobCommand,
  type CreateTrainingJobCommandInput,
  DescribeTrainingJobCommand,
  ListTrainingJobsCommand,
  SageMakerClient,
} from '@aws-sdk/client-sagemaker';
import { GetServiceQuotaCommand, ServiceQuotasClient } from '@aws-sdk/client-service-quotas';
import { AssumeRoleCommand, STSClient } from '@aws-sdk/client-sts';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { eventually, type Sandbox, startSandbox } from '../../lib/sandbox/testing';
import { BUCKET, bashJob, clientOptions, temporaryFolder, tlsOptions, VENV } from './support';

const ACCOUNT = '000000000000';
const JOBS = `arn:aws:sagemaker:us-east-1:${ACCOUNT}:training-job`;
const roleArnOf = (name: string) => `arn:aws:iam::${ACCOUNT}:role/${name}`;
const trust = (Principal: object) =>
  JSON.stringify({ Version: '2012-10-17', Statement: [{ Effect: 'Allow', Principal, Action: 'sts:AssumeRole' }] });

type Statement = { Action: string | string[]; Resource: string; Condition?: object };

const CREATE: Statement = { Action: 'sagemaker:CreateTrainingJob', Resource: `${JOBS}/research-*` };
const READ: Statement = { Action: ['sagemaker:DescribeTrainingJob', 'sagemaker:ListTrainingJobs'], Resource: '*' };
const PASS: Statement = {
  Action: 'iam:PassRole',
  Resource: roleArnOf('trainer'),
  Condition: { StringEquals: { 'iam:PassedToService': 'sagemaker.amazonaws.com' } },
};

let folder: string;
let sandbox: Sandbox;
let iam: IAMClient;
let launcher: SageMakerClient;
let launcherCredentials: { accessKeyId: string; secretAccessKey: string; sessionToken: string };

beforeAll(async () => {
  folder = temporaryFolder();
  sandbox = await startSandbox({
    stateDir: folder,
    venvDir: VENV,
    auth: true,
    time: { startingSeconds: 0, downloadingSeconds: 0 },
  });
  const root = { ...clientOptions(sandbox, sandbox.endpoints.aws), ...tlsOptions(sandbox) };
  iam = new IAMClient(root);
  const s3 = new S3Client({ ...root, forcePathStyle: true });
  await s3.send(new CreateBucketCommand({ Bucket: BUCKET }));
  await s3.send(new PutObjectCommand({ Bucket: BUCKET, Key: 'in/x', Body: 'x' }));
  await role('trainer', { Service: 'sagemaker.amazonaws.com' });
  await role('not-for-sagemaker', { Service: 'lambda.amazonaws.com' });
  await role('launcher', { AWS: `arn:aws:iam::${ACCOUNT}:root` });
  const assume = new AssumeRoleCommand({ RoleArn: roleArnOf('launcher'), RoleSessionName: 'test' });
  const { Credentials: got } = await new STSClient(root).send(assume);
  launcherCredentials = {
    accessKeyId: got?.AccessKeyId ?? '',
    secretAccessKey: got?.SecretAccessKey ?? '',
    sessionToken: got?.SessionToken ?? '',
  };
  launcher = new SageMakerClient({ ...root, endpoint: sandbox.endpoints.sagemaker, credentials: launcherCredentials });
}, 120_000);

beforeEach(() => allow('launcher', [CREATE, READ, PASS]));

afterAll(async () => {
  await sandbox.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function role(RoleName: string, principal: object): Promise<void> {
  await iam.send(new CreateRoleCommand({ RoleName, AssumeRolePolicyDocument: trust(principal) }));
}

async function allow(RoleName: string, statements: Statement[]): Promise<void> {
  const Statement = statements.map((statement) => ({ Effect: 'Allow', ...statement }));
  const PolicyDocument = JSON.stringify({ Version: '2012-10-17', Statement });
  await iam.send(new PutRolePolicyCommand({ RoleName, PolicyName: 'own', PolicyDocument }));
}

function request(name: string, script = 'true'): CreateTrainingJobCommandInput {
  return bashJob({ roleArn: roleArnOf('trainer') }, name, script);
}

const create = (input: CreateTrainingJobCommandInput) => launcher.send(new CreateTrainingJobCommand(input));

function finished(name: string) {
  return eventually(async () => {
    const job = await launcher.send(new DescribeTrainingJobCommand({ TrainingJobName: name }));
    return job.TrainingJobStatus !== 'InProgress' && job;
  });
}

test('a role creates the jobs its policy names, with the role it may pass', async () => {
  await create(request('research-1'));

  expect((await finished('research-1')).TrainingJobStatus).toBe('Completed');
});

test.each([
  [
    'another name',
    request('other-1'),
    undefined,
    'sagemaker:CreateTrainingJob on resource: arn:aws:sagemaker:us-east-1:000000000000:training-job/other-1 because no identity-based policy allows the sagemaker:CreateTrainingJob action',
  ],
  [
    'tags without AddTags',
    { ...request('research-2'), Tags: [{ Key: 'a', Value: 'b' }] },
    undefined,
    'sagemaker:AddTags on resource',
  ],
  [
    'no PassRole',
    request('research-2'),
    [CREATE, READ],
    'iam:PassRole on resource: arn:aws:iam::000000000000:role/trainer',
  ],
  [
    'PassRole for another service',
    request('research-2'),
    [CREATE, READ, { ...PASS, Condition: { StringEquals: { 'iam:PassedToService': 'ec2.amazonaws.com' } } }],
    'iam:PassRole on resource',
  ],
  [
    'a type that a condition forbids',
    request('research-2'),
    [
      { ...CREATE, Condition: { 'ForAllValues:StringEquals': { 'sagemaker:InstanceTypes': 'ml.c5.large' } } },
      READ,
      PASS,
    ],
    'sagemaker:CreateTrainingJob on resource',
  ],
])('fails: %s', async (_, input, statements, message) => {
  if (statements) await allow('launcher', statements);

  await expect(create(input)).rejects.toMatchObject({
    name: 'AccessDeniedException',
    message: expect.stringContaining(
      `User: arn:aws:sts::000000000000:assumed-role/launcher/test is not authorized to perform: ${message}`,
    ),
  });
});

test('fails: without any policy a list is refused, and so is a quota', async () => {
  await iam.send(new DeleteRolePolicyCommand({ RoleName: 'launcher', PolicyName: 'own' }));
  const quotas = new ServiceQuotasClient({
    ...clientOptions(sandbox, sandbox.endpoints.serviceQuotas),
    ...tlsOptions(sandbox),
    credentials: launcherCredentials,
  });
  const get = () => quotas.send(new GetServiceQuotaCommand({ ServiceCode: 'sagemaker', QuotaCode: 'L-82E1C851' }));

  await expect(launcher.send(new ListTrainingJobsCommand({}))).rejects.toMatchObject({ name: 'AccessDeniedException' });
  await expect(get()).rejects.toMatchObject({ name: 'AccessDeniedException' });
  await allow('launcher', [{ Action: 'servicequotas:GetServiceQuota', Resource: '*' }]);
  expect((await get()).Quota?.Value).toBe(0);
});

test('fails: a wrong secret, an unknown key', async () => {
  const as = (credentials: object) =>
    new SageMakerClient({
      ...clientOptions(sandbox, sandbox.endpoints.sagemaker),
      ...tlsOptions(sandbox),
      credentials: { ...launcherCredentials, ...credentials },
    }).send(new ListTrainingJobsCommand({}));

  await expect(as({ secretAccessKey: 'guess' })).rejects.toMatchObject({ name: 'SignatureDoesNotMatch' });
  await expect(as({ accessKeyId: 'ASIAUNKNOWN000000000' })).rejects.toMatchObject({
    name: 'UnrecognizedClientException',
  });
});

test('fails: a role that SageMaker may not assume', async () => {
  await allow('launcher', [CREATE, READ, { ...PASS, Resource: '*' }]);

  await expect(create({ ...request('research-3'), RoleArn: roleArnOf('not-for-sagemaker') })).rejects.toMatchObject({
    name: 'ValidationException',
    message: expect.stringContaining("allows principal 'sagemaker.amazonaws.com' to assume the role"),
  });
});

test('the conditions of a trust policy are judged with the job as the source', async () => {
  await allow('launcher', [CREATE, READ, { ...PASS, Resource: '*' }]);
  const trusting = async (name: string, source: string) => {
    const Condition = { StringEquals: { 'aws:SourceAccount': ACCOUNT }, ArnLike: { 'aws:SourceArn': source } };
    const service = {
      Effect: 'Allow',
      Principal: { Service: 'sagemaker.amazonaws.com' },
      Action: 'sts:AssumeRole',
      Condition,
    };
    const AssumeRolePolicyDocument = JSON.stringify({ Version: '2012-10-17', Statement: [service] });
    await iam.send(new CreateRoleCommand({ RoleName: name, AssumeRolePolicyDocument }));
  };
  await trusting('for-research', `${JOBS}/research-*`);
  await trusting('for-others', `${JOBS}/other-*`);

  await create({ ...request('research-4'), RoleArn: roleArnOf('for-research') });
  const refused = create({ ...request('research-5'), RoleArn: roleArnOf('for-others') });

  await expect(refused).rejects.toMatchObject({
    name: 'ValidationException',
    message: expect.stringContaining('for-others'),
  });
  expect((await finished('research-4')).TrainingJobStatus).toBe('Completed');
});

test('a job reads its data with the permissions of its own role', async () => {
  const withData = (name: string): CreateTrainingJobCommandInput => ({
    ...request(name),
    InputDataConfig: [
      { ChannelName: 'train', DataSource: { S3DataSource: { S3DataType: 'S3Prefix', S3Uri: `s3://${BUCKET}/in/` } } },
    ],
  });
  await create(withData('research-denied'));
  const denied = await finished('research-denied');
  await allow('trainer', [{ Action: ['s3:ListBucket', 's3:GetObject'], Resource: '*' }]);
  await create(withData('research-allowed'));

  expect(denied.FailureReason).toMatch(/^ClientError: Data download failed: .*s3:ListBucket/);
  expect((await finished('research-allowed')).TrainingJobStatus).toBe('Completed');
});
