import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import https from 'node:https';
import os from 'node:os';
import path from 'node:path';
import { CloudWatchLogsClient, FilterLogEventsCommand } from '@aws-sdk/client-cloudwatch-logs';
import { CreateRoleCommand, IAMClient } from '@aws-sdk/client-iam';
import {
  CreateBucketCommand,
  GetObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
} from '@aws-sdk/client-s3';
import {
  CreateTrainingJobCommand,
  type CreateTrainingJobCommandInput,
  DescribeTrainingJobCommand,
  type DescribeTrainingJobCommandOutput,
  SageMakerClient,
} from '@aws-sdk/client-sagemaker';
import { ServiceQuotasClient } from '@aws-sdk/client-service-quotas';
import { instanceQuota, QUOTA } from '../../lib/core/catalog/quotas';
import {
  adminOf,
  eventually,
  type Sandbox,
  type SandboxAdmin,
  type SandboxOptions,
  startSandbox,
} from '../../lib/sandbox/testing';

/** MiniStack's environment is made once for all tests of this checkout. */
export const VENV = path.join(__dirname, '..', '..', '.slipway', 'venv');

export const BUCKET = 'lab';
const TRUST = {
  Version: '2012-10-17',
  Statement: [{ Effect: 'Allow', Principal: { Service: 'sagemaker.amazonaws.com' }, Action: 'sts:AssumeRole' }],
};

/** A running sandbox in a temporary folder with clients of the real SDK, one role and one bucket. */
export interface Lab {
  sandbox: Sandbox;
  admin: SandboxAdmin;
  sagemaker: SageMakerClient;
  quotas: ServiceQuotasClient;
  s3: S3Client;
  iam: IAMClient;
  logs: CloudWatchLogsClient;
  roleArn: string;
  close(): Promise<void>;
}

export function clientOptions(sandbox: Pick<Sandbox, 'env'>, endpoint: string, region = 'us-east-1') {
  const { AWS_ACCESS_KEY_ID: accessKeyId = '', AWS_SECRET_ACCESS_KEY: secretAccessKey = '' } = sandbox.env;
  return { endpoint, region, credentials: { accessKeyId, secretAccessKey }, maxAttempts: 1 };
}

/** What a client needs besides to trust the certificate of a sandbox with enforcement. */
export function tlsOptions(sandbox: Sandbox) {
  const ca = readFileSync(sandbox.env.AWS_CA_BUNDLE ?? '');
  return { requestHandler: { httpsAgent: new https.Agent({ ca }) } };
}

export function temporaryFolder(): string {
  return mkdtempSync(path.join(os.tmpdir(), 'slipway-test-'));
}

/** Room for many small jobs at a time. */
const ROOMY = {
  [QUOTA.instancesAcrossTraining]: 50,
  [QUOTA.instancesAcrossSpot]: 50,
  [instanceQuota('ml.m5.large', 'training').code ?? '']: 50,
};

export async function openLab(options: SandboxOptions = {}): Promise<Lab> {
  const folder = options.stateDir ?? temporaryFolder();
  const quotas = { ...ROOMY, ...options.quotas };
  const sandbox = await startSandbox({ stateDir: folder, venvDir: VENV, ...options, quotas });
  const { aws, sagemaker: services } = sandbox.endpoints;
  const iam = new IAMClient(clientOptions(sandbox, aws));
  const s3 = new S3Client({ ...clientOptions(sandbox, aws), forcePathStyle: true });
  const role = new CreateRoleCommand({ RoleName: 'trainer', AssumeRolePolicyDocument: JSON.stringify(TRUST) });
  // A sandbox that keeps its state has the role already.
  await iam.send(role).catch((error: Error) => {
    if (error.name !== 'EntityAlreadyExistsException') throw error;
  });
  await s3.send(new CreateBucketCommand({ Bucket: BUCKET }));
  const close = async () => {
    await sandbox.stop();
    rmSync(folder, { recursive: true, force: true });
  };
  return {
    sandbox,
    admin: adminOf(sandbox),
    sagemaker: new SageMakerClient(clientOptions(sandbox, services)),
    quotas: new ServiceQuotasClient(clientOptions(sandbox, services)),
    logs: new CloudWatchLogsClient(clientOptions(sandbox, aws)),
    iam,
    s3,
    roleArn: 'arn:aws:iam::000000000000:role/trainer',
    close,
  };
}

/** A request for `count` instances that run a bash script. */
export function bashJob(
  lab: Pick<Lab, 'roleArn'>,
  name: string,
  script: string,
  count = 1,
): CreateTrainingJobCommandInput {
  return {
    TrainingJobName: name,
    RoleArn: lab.roleArn,
    AlgorithmSpecification: {
      TrainingImage: '111122223333.dkr.ecr.us-east-1.amazonaws.com/lab:1',
      TrainingInputMode: 'File',
      ContainerEntrypoint: ['/bin/bash'],
      ContainerArguments: ['-c', script],
    },
    OutputDataConfig: { S3OutputPath: `s3://${BUCKET}/out/` },
    ResourceConfig: { InstanceType: 'ml.m5.large', InstanceCount: count, VolumeSizeInGB: 10 },
    StoppingCondition: { MaxRuntimeInSeconds: 3600 },
  };
}

export async function create(lab: Lab, request: CreateTrainingJobCommandInput): Promise<string> {
  await lab.sagemaker.send(new CreateTrainingJobCommand(request));
  return request.TrainingJobName ?? '';
}

export const describeJob = (lab: Lab, name: string): Promise<DescribeTrainingJobCommandOutput> =>
  lab.sagemaker.send(new DescribeTrainingJobCommand({ TrainingJobName: name }));

/** Waits for the end of a job. */
export function finished(lab: Lab, name: string): Promise<DescribeTrainingJobCommandOutput> {
  return eventually(
    async () => {
      const job = await describeJob(lab, name);
      return ['Completed', 'Failed', 'Stopped'].includes(job.TrainingJobStatus ?? '') && job;
    },
    { what: `end of ${name}` },
  );
}

/** Waits until a job is in a secondary status. */
export function inState(lab: Lab, name: string, status: string): Promise<DescribeTrainingJobCommandOutput> {
  return eventually(
    async () => {
      const job = await describeJob(lab, name);
      return job.SecondaryStatus === status && job;
    },
    { what: `${name} ${status}`, intervalSeconds: 0.02 },
  );
}

/** Secondary statuses in the order in which a job went through them. */
export const statesOf = (job: DescribeTrainingJobCommandOutput) =>
  (job.SecondaryStatusTransitions ?? []).map((t) => t.Status);

export async function run(lab: Lab, request: CreateTrainingJobCommandInput): Promise<DescribeTrainingJobCommandOutput> {
  return finished(lab, await create(lab, request));
}

export async function put(lab: Lab, key: string, body: string): Promise<void> {
  await lab.s3.send(new PutObjectCommand({ Bucket: BUCKET, Key: key, Body: body }));
}

export async function read(lab: Lab, key: string): Promise<string> {
  const { Body } = await lab.s3.send(new GetObjectCommand({ Bucket: BUCKET, Key: key }));
  return (await Body?.transformToString()) ?? '';
}

export async function keys(lab: Lab, prefix: string): Promise<string[]> {
  const { Contents } = await lab.s3.send(new ListObjectsV2Command({ Bucket: BUCKET, Prefix: prefix }));
  return (Contents ?? []).map((object) => object.Key ?? '');
}

/** Log lines of a job, as `algo-1: text`. */
export async function logLines(lab: Lab, name: string, kind = 'TrainingJobs'): Promise<string[]> {
  const { events } = await lab.logs.send(
    new FilterLogEventsCommand({ logGroupName: `/aws/sagemaker/${kind}`, logStreamNamePrefix: `${name}/` }),
  );
  return (events ?? []).map(
    ({ logStreamName, message }) => `${logStreamName?.split('/')[1]?.replace(/-\d{10,}$/, '')}: ${message}`,
  );
}
