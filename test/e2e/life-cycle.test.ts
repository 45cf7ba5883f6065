// First deploy, second deploy and last, through the real CDK CLI on the embedded AWS.
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { CloudWatchLogsClient, DescribeLogGroupsCommand } from '@aws-sdk/client-cloudwatch-logs';
import { DynamoDBClient, PutItemCommand, ScanCommand } from '@aws-sdk/client-dynamodb';
import { ECRClient, ListImagesCommand, PutImageCommand } from '@aws-sdk/client-ecr';
import {
  DeleteBucketPolicyCommand,
  GetBucketPolicyCommand,
  GetObjectCommand,
  PutObjectCommand,
} from '@aws-sdk/client-s3';
import { GetParameterCommand, SSMClient } from '@aws-sdk/client-ssm';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Cycle } from './support/cycle';

const DATA = 'slipway-cycle-000000000000-us-west-2-data';
const NOTHING_REQUIRED = `quotas: { enforce: "off" }\n`;

const UNPROTECTED = 'protection: { terminationProtection: false }\n';
const RUNS = 'slipway-cycle-runs';
const REPOSITORY = 'slipway-cycle';
const MANIFEST = JSON.stringify({ schemaVersion: 2, config: {}, layers: [] });

let cycle: Cycle;
beforeAll(async () => {
  cycle = await Cycle.start('cycle');
});
afterAll(() => cycle?.end());

const policyOf = async (Bucket: string) => (await cycle.s3().send(new GetBucketPolicyCommand({ Bucket }))).Policy ?? '';
/** The value of a parameter. */
const parameterOf = async (name: string) => {
  const found = await new SSMClient(cycle.client()).send(new GetParameterCommand({ Name: name }));
  return found.Parameter?.Value ?? '';
};

/** An object, an item and an image, which only their own bucket, table and repository can have later. */
async function leaveSomething(): Promise<void> {
  await cycle.s3().send(new PutObjectCommand({ Bucket: DATA, Key: 'shared/tokens', Body: 'kept' }));
  const Item = { runId: { S: 'gpt-1' }, item: { S: 'RUN' } };
  await new DynamoDBClient(cycle.client()).send(new PutItemCommand({ TableName: RUNS, Item }));
  const image = { repositoryName: REPOSITORY, imageManifest: MANIFEST, imageTag: 'kept' };
  await new ECRClient(cycle.client()).send(new PutImageCommand(image));
}

/** What a later stack must find: what was left there, and what guards it. */
async function retained() {
  const { Body } = await cycle.s3().send(new GetObjectCommand({ Bucket: DATA, Key: 'shared/tokens' }));
  const policies = await Promise.all((await cycle.buckets()).sort().map(statementsOf));
  const { Items } = await new DynamoDBClient(cycle.client()).send(new ScanCommand({ TableName: RUNS }));
  const images = new ListImagesCommand({ repositoryName: REPOSITORY });
  const { imageIds = [] } = await new ECRClient(cycle.client()).send(images);
  const descriptor = JSON.parse(await parameterOf('/slipway/environments/cycle/default')) as { kmsKeyArn: string };
  const logs = new DescribeLogGroupsCommand({ logGroupNamePrefix: `/slipway/${cycle.stackName}/` });
  const { logGroups = [] } = await new CloudWatchLogsClient(cycle.client()).send(logs);
  return {
    data: await Body?.transformToString(),
    policies,
    runs: Items?.flatMap(({ runId }) => (runId?.S === 'gpt-1' ? runId.S : [])),
    images: imageIds.map(({ imageTag }) => imageTag),
    keys: [descriptor.kmsKeyArn, await parameterOf('/slipway/storage/slipway-cycle/key')],
    logs: logGroups.map(({ logGroupName, creationTime }) => [logGroupName, creationTime]),
  };
}

/** A policy's statements in any order, without how lists of one are written. */
async function statementsOf(bucket: string): Promise<string[]> {
  const { Statement } = JSON.parse(await policyOf(bucket)) as { Statement: Record<string, unknown>[] };
  const plain = (_: string, value: unknown) => (Array.isArray(value) && value.length === 1 ? value[0] : value);
  return Statement.map((one) => JSON.stringify(one, plain)).sort();
}

test('a first deploy that fails at its last resource leaves nothing, and the next one goes through', async () => {
  const run = `name: refused
code: { source: ./code, entryPoint: hello.py }
compute: { instanceType: ml.p4d.24xlarge, instanceCount: 1 }
distribution: { launcher: script }
limits: { maxRuntimeSeconds: 600 }
`;
  writeFileSync(path.join(cycle.sandbox.folder, 'refused.yaml'), run);
  mkdirSync(path.join(cycle.sandbox.folder, 'code'));
  writeFileSync(path.join(cycle.sandbox.folder, 'code/hello.py'), 'print("hello")\n');
  // Its limit is 0 in a new account: control refuses the run after the driver was published.
  const submits = `${NOTHING_REQUIRED}runs: [{ file: refused.yaml, submit: on-change }]\n`;
  const { code, said } = await cycle.cdk('deploy', submits);
  expect([code, said]).toEqual([1, expect.stringContaining('quota')]);
  expect(await cycle.status()).toBe('ROLLBACK_COMPLETE');
  expect(await cycle.buckets()).toEqual([]);

  await cycle.done('deploy', NOTHING_REQUIRED);
  expect(await cycle.buckets()).toHaveLength(4);
});

test('termination protection refuses a deletion and leaves a stack that can be updated', async () => {
  const { code, said } = await cycle.cdk('destroy');
  expect([code, said]).toEqual([1, expect.stringContaining('TerminationProtection')]);
  expect(await cycle.status()).toMatch(/^(CREATE|UPDATE)_COMPLETE$/);
  const unprotected = `${NOTHING_REQUIRED}${UNPROTECTED}teams: { default: {}, nlp: {} }\n`;
  await cycle.done('deploy', unprotected);
});

test('all that is retained is adopted: data, policies, key, table, repository, log', async () => {
  await leaveSomething();
  const before = await retained();
  await cycle.done('destroy');
  expect(await cycle.status()).toBeUndefined();
  expect(await cycle.buckets()).toHaveLength(4);
  for (const bucket of await cycle.buckets()) expect(await policyOf(bucket)).toContain('aws:SecureTransport');

  // As a stack of version 0.1.0 left them.
  for (const Bucket of await cycle.buckets()) await cycle.s3().send(new DeleteBucketPolicyCommand({ Bucket }));
  await cycle.done('deploy', `${NOTHING_REQUIRED}storage: { adopt: true }\n${UNPROTECTED}`);
  expect(await retained()).toEqual(before);
});

test('fails: a deploy without adopt where an earlier one left its buckets', async () => {
  await cycle.done('destroy');
  expect((await cycle.cdk('deploy', NOTHING_REQUIRED)).code).toBe(1);
});
