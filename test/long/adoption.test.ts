// What a deletion leaves, and a deploy with `storage.adopt: true` takes over: buckets with policies and expiration, key, run table,
// image repository and log group, each with what was in it; through the real CDK CLI on the embedded AWS.
import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { CloudWatchLogsClient, DescribeLogGroupsCommand } from '@aws-sdk/client-cloudwatch-logs';
import { DescribeTableCommand, DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { BatchGetImageCommand, DeleteRepositoryCommand, ECRClient, PutImageCommand } from '@aws-sdk/client-ecr';
import { DescribeKeyCommand, KMSClient } from '@aws-sdk/client-kms';
import {
  DeleteBucketPolicyCommand,
  GetBucketLifecycleConfigurationCommand,
  GetBucketPolicyCommand,
  GetObjectCommand,
  type LifecycleRule,
  PutBucketLifecycleConfigurationCommand,
  PutObjectCommand,
} from '@aws-sdk/client-s3';
import { GetParameterCommand, SSMClient } from '@aws-sdk/client-ssm';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Cycle } from '../e2e/support/cycle';
import { ROOT } from '../e2e/support/sandbox';

const CLI = path.join(ROOT, 'dist/cli/slipway.mjs');
const NAME = 'adopted';
const DATA = `slipway-${NAME}-000000000000-us-west-2-data`;
const CHECKPOINTS = `slipway-${NAME}-000000000000-us-west-2-checkpoints`;
const OLD_VERSIONS: LifecycleRule = {
  ID: 'old-versions',
  Status: 'Enabled',
  Filter: { Prefix: '' },
  NoncurrentVersionExpiration: { NoncurrentDays: 7 },
};
const REPOSITORY = `slipway-${NAME}`;
const IMAGE = 'kept';
const FIRST = 'quotas: { enforce: "off" }\nprotection: { terminationProtection: false }\n';
const ADOPTING = `${FIRST}storage: { adopt: true }\n`;
const RUN = `name: hello
code: { source: ./code, entryPoint: hello.py }
compute: { instanceType: ml.m5.xlarge, instanceCount: 1 }
distribution: { launcher: script }
limits: { maxRuntimeSeconds: 600 }
`;

let cycle: Cycle;
beforeAll(async () => {
  cycle = await Cycle.start(NAME, { 'L-CCE2AFA6': 8, 'L-00C91CB5': 64, 'L-622CFD70': 64 });
  const folder = cycle.sandbox.folder;
  mkdirSync(path.join(folder, 'code'));
  writeFileSync(path.join(folder, 'code/hello.py'), 'print("hello")\n');
  writeFileSync(path.join(folder, 'hello.yaml'), RUN);
});
afterAll(() => cycle?.end());

async function slipway(...args: string[]) {
  const where = ['--environment', `${NAME}/default`, '--region', 'us-west-2', '--json'];
  return JSON.parse(await cycle.sandbox.call(process.execPath, [CLI, ...args, ...where]));
}

/** The run, which must complete. */
async function completes(runId: string): Promise<void> {
  const file = path.join(cycle.sandbox.folder, 'hello.yaml');
  expect(await slipway('launch', file, '--yes', '--wait', '--run-id', runId)).toMatchObject({ state: 'completed' });
}

/** An image as a build of the environment leaves it. */
async function putImage(): Promise<void> {
  const digest = `sha256:${createHash('sha256').update(IMAGE).digest('hex')}`;
  const config = { mediaType: 'application/vnd.docker.container.image.v1+json', size: IMAGE.length, digest };
  const mediaType = 'application/vnd.docker.distribution.manifest.v2+json';
  const imageManifest = JSON.stringify({ schemaVersion: 2, mediaType, config, layers: [] });
  await new ECRClient(cycle.client()).send(
    new PutImageCommand({ repositoryName: REPOSITORY, imageTag: IMAGE, imageManifest }),
  );
}

/** Everything that is retained, as far as it has an identity or settings of its own. */
async function retained() {
  const client = cycle.client();
  const buckets = await Promise.all((await cycle.buckets()).sort().map(bucket));
  const parameter = await new SSMClient(client).send(
    new GetParameterCommand({ Name: `/slipway/storage/slipway-${NAME}/key` }),
  );
  const key = await new KMSClient(client).send(new DescribeKeyCommand({ KeyId: parameter.Parameter?.Value }));
  const table = await new DynamoDBClient(client).send(new DescribeTableCommand({ TableName: `slipway-${NAME}-runs` }));
  const image = new BatchGetImageCommand({ repositoryName: REPOSITORY, imageIds: [{ imageTag: IMAGE }] });
  const { images } = await new ECRClient(client).send(image);
  const deploys = new DescribeLogGroupsCommand({ logGroupNamePrefix: `/slipway/${cycle.stackName}/` });
  const { logGroups } = await new CloudWatchLogsClient(client).send(deploys);
  return {
    buckets,
    key: [key.KeyMetadata?.Arn, key.KeyMetadata?.KeyState],
    table: table.Table?.TableId ?? table.Table?.CreationDateTime,
    images: images?.map(({ imageId }) => imageId?.imageDigest),
    logGroups: logGroups?.map(({ logGroupName, creationTime }) => [logGroupName, creationTime]),
  };
}

async function bucket(Bucket: string) {
  const { Policy = '' } = await cycle.s3().send(new GetBucketPolicyCommand({ Bucket }));
  return { Bucket, Policy: JSON.parse(Policy) };
}

/** The rule that the template gives the bucket: MiniStack leaves those of templates out. */
async function putLifecycle(Bucket: string): Promise<void> {
  const LifecycleConfiguration = { Rules: [OLD_VERSIONS] };
  await cycle.s3().send(new PutBucketLifecycleConfigurationCommand({ Bucket, LifecycleConfiguration }));
}

async function lifecycleRules(Bucket: string): Promise<(string | undefined)[]> {
  const { Rules = [] } = await cycle.s3().send(new GetBucketLifecycleConfigurationCommand({ Bucket }));
  return Rules.map(({ ID }) => ID);
}

let before: Awaited<ReturnType<typeof retained>>;

test('a deletion leaves all of it', async () => {
  await cycle.done('deploy', FIRST);
  await completes('before');
  await putImage();
  await putLifecycle(CHECKPOINTS);
  await cycle.s3().send(new PutObjectCommand({ Bucket: DATA, Key: 'shared/tokens', Body: 'kept' }));
  before = await retained();
  expect(before.buckets).toHaveLength(4);
  expect(before.images).toHaveLength(1);
  expect(before.logGroups).toHaveLength(1);

  await cycle.done('destroy');
  expect(await cycle.status()).toBeUndefined();
  expect(await retained()).toEqual(before);
});

test('fails: a deploy without adopt where an earlier one left its buckets', async () => {
  expect((await cycle.cdk('deploy', FIRST)).code).toBe(1);
  expect(await retained()).toEqual(before);
});

test('a deploy that adopts takes all of it over as it is, with data and history, and runs', async () => {
  // Its policy may be gone; the buckets are taken over all the same.
  await cycle.s3().send(new DeleteBucketPolicyCommand({ Bucket: DATA }));
  await cycle.done('deploy', ADOPTING);
  expect(await retained()).toEqual(before);
  expect(await lifecycleRules(CHECKPOINTS)).toEqual(['old-versions', 'leftovers']);
  const { Body } = await cycle.s3().send(new GetObjectCommand({ Bucket: DATA, Key: 'shared/tokens' }));
  expect(await Body?.transformToString()).toBe('kept');
  expect(await slipway('status', 'before')).toMatchObject({ state: 'completed' });
  await completes('after');
});

test('the next deletion leaves it as well, and the next adoption takes it over again', async () => {
  await cycle.done('destroy');
  expect(await retained()).toEqual(before);
  await cycle.done('deploy', ADOPTING);
  expect(await slipway('status', 'after')).toMatchObject({ state: 'completed' });
  await cycle.done('destroy');
});

test('fails: something that is not there any more is named, and the stack that could not adopt it goes', async () => {
  await new ECRClient(cycle.client()).send(new DeleteRepositoryCommand({ repositoryName: REPOSITORY, force: true }));
  const { code, said } = await cycle.cdk('deploy', ADOPTING);
  expect([code, said]).toEqual([1, expect.stringContaining(`got no repository ${REPOSITORY};`)]);
  expect(await cycle.status()).toBe('ROLLBACK_COMPLETE');
  expect(await cycle.buckets()).toHaveLength(4);
});
