// The quota gate through the real CDK CLI on the embedded AWS: refused, nothing left, cured, and no second look.
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { CloudFormationClient, DescribeStacksCommand } from '@aws-sdk/client-cloudformation';
import { DynamoDBClient, PutItemCommand } from '@aws-sdk/client-dynamodb';
import { ListBucketsCommand, S3Client } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { adminOf } from '../../lib/sandbox/testing';
import { ROOT, type TestSandbox, testSandbox } from './support/sandbox';

const CDK = path.join(ROOT, 'node_modules/.bin/cdk');
const STACK = 'Slipway-gate-us-west-2';
const P4D = 'L-09B4A649';
const ENVIRONMENT = `name: gate
regions: { us-west-2: {} }
storage: { retain: false }
quotas:
  requestIncrease: true
  require: [{ instanceType: ml.p4d.24xlarge, count: 3 }]
`;

let sandbox: TestSandbox;
let assembly: string;
const deploy = () =>
  sandbox.tryCall(CDK, ['deploy', '--all', '--app', assembly, '--method=direct', '--require-approval', 'never']);
const client = () => ({
  endpoint: sandbox.endpoints.aws,
  region: 'us-west-2',
  credentials: { accessKeyId: '000000000000', secretAccessKey: 'test' },
});
const buckets = async () =>
  ((await new S3Client({ ...client(), forcePathStyle: true }).send(new ListBucketsCommand({}))).Buckets ?? []).filter(
    (bucket) => bucket.Name?.startsWith('slipway-gate-'),
  );
const stack = async () =>
  (await new CloudFormationClient(client()).send(new DescribeStacksCommand({ StackName: STACK }))).Stacks?.[0];
const summary = async () =>
  (await stack())?.Outputs?.find((output) => output.OutputKey?.startsWith('PreflightSummary'))?.OutputValue;

beforeAll(async () => {
  sandbox = await testSandbox();
  const file = path.join(sandbox.folder, 'gate.yaml');
  assembly = path.join(sandbox.folder, 'cdk.out');
  writeFileSync(file, ENVIRONMENT);
  const synth = ['synth', '--quiet', '--output', assembly, '-c', `environment=${file}`];
  await Promise.all([
    sandbox.call(CDK, ['bootstrap', 'aws://000000000000/us-west-2', '--app', '']),
    sandbox.call(CDK, synth),
  ]);
});
afterAll(() => sandbox?.end());

test('a deploy above the quota is refused before anything else is made, and the increase is requested', async () => {
  const { code, stdout, stderr } = await deploy();
  expect(code).toBe(1);
  const said = `${stdout}${stderr}`.replace(/\s+/g, ' ');
  expect(said).toContain('quotas: must cover what environment gate needs in us-west-2, got 1 too small');
  expect(said).toContain(`ml.p4d.24xlarge for training job usage (${P4D}): limit 0, needed 3`);
  expect(said).toContain('3 requested');
  expect(await buckets()).toEqual([]);
});

test('a second try files no second request', async () => {
  const { code, stdout, stderr } = await deploy();
  expect(code).toBe(1);
  expect(`${stdout}${stderr}`.replace(/\s+/g, ' ')).toContain('3 already requested');
});

test('when the increase is approved the same deploy goes through', async () => {
  await adminOf(sandbox).decideIncreases('us-west-2', 'APPROVED', P4D);
  const { code, stderr } = await deploy();
  expect([code, code === 0 ? '' : stderr]).toEqual([0, '']);
  expect(await buckets()).toHaveLength(4);
  expect(await summary()).toMatch(/^3 enough, 0 short, 0 unknown at /);
});

test('a deploy that changes nothing does not look at the quotas again', async () => {
  const before = await summary();
  await adminOf(sandbox).setQuota('us-west-2', P4D, 0);
  expect((await deploy()).code).toBe(0);
  expect(await summary()).toBe(before);
});

test('the stack is not deleted under a live run', async () => {
  const item = { runId: { S: 'gpt-261121' }, item: { S: 'RUN' }, active: { S: 'active' } };
  await new DynamoDBClient(client()).send(new PutItemCommand({ TableName: 'slipway-gate-runs', Item: item }));
  const { code, stdout, stderr } = await sandbox.tryCall(CDK, ['destroy', '--all', '--force', '--app', assembly]);
  expect(code).toBe(1);
  expect(`${stdout}${stderr}`.replace(/\s+/g, ' ')).toContain('this deletion must not hit live runs, got gpt-261121;');
  expect((await stack())?.StackStatus).toBe('DELETE_FAILED');
});
