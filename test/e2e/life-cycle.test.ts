// First deploy, second deploy and last, through the real CDK CLI on the embedded AWS.
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { CloudFormationClient, DescribeStacksCommand } from '@aws-sdk/client-cloudformation';
import {
  DeleteBucketPolicyCommand,
  GetBucketPolicyCommand,
  GetObjectCommand,
  ListBucketsCommand,
  PutObjectCommand,
  S3Client,
} from '@aws-sdk/client-s3';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ROOT, type TestSandbox, testSandbox } from './support/sandbox';

const CDK = path.join(ROOT, 'node_modules/.bin/cdk');
const STACK = 'Slipway-cycle-us-west-2';
const DATA = 'slipway-cycle-000000000000-us-west-2-data';
const NOTHING_REQUIRED = `quotas: { enforce: "off" }\n`;

let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await testSandbox();
  await sandbox.call(CDK, ['bootstrap', 'aws://000000000000/us-west-2', '--app', '']);
});
afterAll(() => sandbox?.end());

const client = () => ({
  endpoint: sandbox.endpoints.aws,
  region: 'us-west-2',
  credentials: { accessKeyId: '000000000000', secretAccessKey: 'test' },
});
const s3 = () => new S3Client({ ...client(), forcePathStyle: true });
const buckets = async () =>
  ((await s3().send(new ListBucketsCommand({}))).Buckets ?? []).flatMap(({ Name }) =>
    Name?.startsWith('slipway-cycle-') ? [Name] : [],
  );
/** State of the stack; undefined once it is gone. */
const status = () =>
  new CloudFormationClient(client())
    .send(new DescribeStacksCommand({ StackName: STACK }))
    .then(({ Stacks }) => Stacks?.[0]?.StackStatus)
    .catch(() => undefined);

let assembly = '';
async function cdk(command: 'deploy' | 'destroy', environment?: string): Promise<{ code: number; said: string }> {
  if (environment !== undefined) {
    const file = path.join(sandbox.folder, 'cycle.yaml');
    assembly = path.join(sandbox.folder, `cdk.out-${Date.now()}`);
    writeFileSync(file, `name: cycle\nregions: { us-west-2: {} }\n${environment}`);
    await sandbox.call(CDK, ['synth', '--quiet', '--output', assembly, '-c', `environment=${file}`, '-c', 'sandbox=1']);
  }
  const options = command === 'deploy' ? ['--method=direct', '--require-approval', 'never'] : ['--force'];
  const { code, stdout, stderr } = await sandbox.tryCall(CDK, [command, '--all', '--app', assembly, ...options]);
  return { code, said: `${stdout}${stderr}`.replace(/\s+/g, ' ') };
}

/** A command that must succeed; what it said is the failure's message. */
async function done(command: 'deploy' | 'destroy', environment?: string): Promise<void> {
  const { code, said } = await cdk(command, environment);
  expect([code, code === 0 ? '' : said]).toEqual([0, '']);
}

test('a first deploy that fails at its last resource leaves nothing, and the next one goes through', async () => {
  const run = `name: refused
code: { source: ./code, entryPoint: hello.py }
compute: { instanceType: ml.p4d.24xlarge, instanceCount: 1 }
distribution: { launcher: script }
limits: { maxRuntimeSeconds: 600 }
`;
  writeFileSync(path.join(sandbox.folder, 'refused.yaml'), run);
  mkdirSync(path.join(sandbox.folder, 'code'));
  writeFileSync(path.join(sandbox.folder, 'code/hello.py'), 'print("hello")\n');
  // Its limit is 0 in a new account: control refuses the run after the driver was published.
  const submits = `${NOTHING_REQUIRED}runs: [{ file: refused.yaml, submit: on-change }]\n`;
  const { code, said } = await cdk('deploy', submits);
  expect([code, said]).toEqual([1, expect.stringContaining('quota')]);
  expect(await status()).toBe('ROLLBACK_COMPLETE');
  expect(await buckets()).toEqual([]);

  await done('deploy', NOTHING_REQUIRED);
  expect(await buckets()).toHaveLength(4);
});

test('termination protection refuses a deletion and leaves a stack that can be updated', async () => {
  const { code, said } = await cdk('destroy');
  expect([code, said]).toEqual([1, expect.stringContaining('TerminationProtection')]);
  expect(await status()).toMatch(/^(CREATE|UPDATE)_COMPLETE$/);
  const unprotected = `${NOTHING_REQUIRED}protection: { terminationProtection: false }\nteams: { default: {}, nlp: {} }\n`;
  await done('deploy', unprotected);
});

test('what is retained is adopted with its policies, and the data is there', async () => {
  await s3().send(new PutObjectCommand({ Bucket: DATA, Key: 'shared/tokens', Body: 'kept' }));
  await done('destroy');
  expect(await status()).toBeUndefined();
  expect(await buckets()).toHaveLength(4);
  const policyOf = async () => (await s3().send(new GetBucketPolicyCommand({ Bucket: DATA }))).Policy ?? '';
  expect(await policyOf()).toContain('aws:SecureTransport');

  // As a stack of version 0.1.0 left it.
  await s3().send(new DeleteBucketPolicyCommand({ Bucket: DATA }));
  const adopting = `${NOTHING_REQUIRED}storage: { adopt: true }\nprotection: { terminationProtection: false }\n`;
  await done('deploy', adopting);
  expect(await policyOf()).toContain('aws:SecureTransport');
  const { Body } = await s3().send(new GetObjectCommand({ Bucket: DATA, Key: 'shared/tokens' }));
  expect(await Body?.transformToString()).toBe('kept');
});

test('fails: a deploy without adopt where an earlier one left its buckets', async () => {
  await done('destroy');
  expect((await cdk('deploy', NOTHING_REQUIRED)).code).toBe(1);
});
