// An environment over existing buckets and an existing key on the embedded AWS: refused while they are not as they must be, then
// deployed, used by a job, and deleted; buckets, objects and key are still there.
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { CreateKeyCommand, DescribeKeyCommand, KMSClient } from '@aws-sdk/client-kms';
import {
  CreateBucketCommand,
  DeletePublicAccessBlockCommand,
  GetObjectCommand,
  ListObjectsV2Command,
  PutBucketEncryptionCommand,
  PutBucketPolicyCommand,
  PutBucketVersioningCommand,
  PutObjectCommand,
  PutPublicAccessBlockCommand,
} from '@aws-sdk/client-s3';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Cycle } from '../e2e/support/cycle';
import { ROOT } from '../e2e/support/sandbox';

const BUCKETS = { data: 'company-data', checkpoints: 'company-checkpoints' };
const CLI = path.join(ROOT, 'dist/cli/slipway.mjs');
const RUN = `name: hello
code: { source: ./code, entryPoint: hello.py }
compute: { instanceType: ml.m5.xlarge, instanceCount: 1 }
distribution: { launcher: script }
data: [{ channel: train, s3: "s3://{dataBucket}/shared/" }]
limits: { maxRuntimeSeconds: 600 }
`;
const HELLO_PY = `import os, pathlib
base = pathlib.Path(os.environ.get("SAGEMAKER_BASE_DIR", "/opt/ml"))
assert (base / "input/data/train/tokens").read_text() == "kept"
`;

let cycle: Cycle;
let keyArn = '';
beforeAll(async () => {
  cycle = await Cycle.start('own', { 'L-CCE2AFA6': 8, 'L-00C91CB5': 64, 'L-622CFD70': 64 });
  const { KeyMetadata } = await new KMSClient(cycle.client()).send(new CreateKeyCommand({ Description: 'company' }));
  keyArn = KeyMetadata?.Arn ?? '';
  for (const Bucket of Object.values(BUCKETS)) {
    await cycle
      .s3()
      .send(new CreateBucketCommand({ Bucket, CreateBucketConfiguration: { LocationConstraint: 'us-west-2' } }));
    await encrypt(Bucket);
  }
  await cycle.s3().send(new PutObjectCommand({ Bucket: BUCKETS.data, Key: 'shared/tokens', Body: 'kept' }));
});
afterAll(() => cycle?.end());

async function encrypt(Bucket: string): Promise<void> {
  const applied = { SSEAlgorithm: 'aws:kms' as const, KMSMasterKeyID: keyArn };
  const ServerSideEncryptionConfiguration = { Rules: [{ ApplyServerSideEncryptionByDefault: applied }] };
  await cycle.s3().send(new PutBucketEncryptionCommand({ Bucket, ServerSideEncryptionConfiguration }));
  const VersioningConfiguration = { Status: 'Enabled' as const };
  await cycle.s3().send(new PutBucketVersioningCommand({ Bucket, VersioningConfiguration }));
}

async function close(Bucket: string, statement: object): Promise<void> {
  const PublicAccessBlockConfiguration = {
    BlockPublicAcls: true,
    IgnorePublicAcls: true,
    BlockPublicPolicy: true,
    RestrictPublicBuckets: true,
  };
  await cycle.s3().send(new PutPublicAccessBlockCommand({ Bucket, PublicAccessBlockConfiguration }));
  const Policy = JSON.stringify({ Version: '2012-10-17', Statement: [statement] });
  await cycle.s3().send(new PutBucketPolicyCommand({ Bucket, Policy }));
}

const file = (more = '') =>
  `quotas: { enforce: "off" }\nstorage: { retain: false, buckets: ${JSON.stringify(BUCKETS)}, kmsKeyArn: "${keyArn}" }\n${more}`;
const slipway = (...args: string[]) =>
  cycle.sandbox.tryCall(process.execPath, [CLI, ...args, '--region', 'us-west-2', '--json']);

test('preflight and the deploy name what is missing, as statements that cure it, and nothing is made', async () => {
  const { code, said } = await cycle.cdk('deploy', file());
  expect([code, said]).toEqual([1, expect.stringContaining('must block public access')]);
  expect(await cycle.buckets()).toEqual([]);

  const preflight = await slipway('preflight', path.join(cycle.sandbox.folder, 'own.yaml'));
  const { issues } = JSON.parse(preflight.stdout) as { issues: { level: string; path: string; message: string }[] };
  const errors = issues.filter(({ level }) => level === 'error');
  expect([preflight.code, errors.map(({ path: at }) => at)]).toEqual([
    1,
    ['data', 'data', 'checkpoints', 'checkpoints'].map((purpose) => `storage.buckets.${purpose}`),
  ]);
  for (const [purpose, bucket] of Object.entries(BUCKETS)) {
    const { message = '' } = errors.find((e) => e.path.endsWith(purpose) && e.message.includes('TLS')) ?? {};
    const [, statement = ''] = /add the statement (\{.*\}) to its policy/.exec(message) ?? [];
    await close(bucket, JSON.parse(statement));
  }
  expect((await slipway('preflight', path.join(cycle.sandbox.folder, 'own.yaml'))).code).toBe(0);
});

test('a job reads and writes the existing buckets', async () => {
  await cycle.done('deploy', file());
  expect(await cycle.buckets()).toHaveLength(2);
  mkdirSync(path.join(cycle.sandbox.folder, 'code'));
  writeFileSync(path.join(cycle.sandbox.folder, 'code/hello.py'), HELLO_PY);
  writeFileSync(path.join(cycle.sandbox.folder, 'hello.yaml'), RUN);
  const run = path.join(cycle.sandbox.folder, 'hello.yaml');
  const launched = await slipway('launch', run, '--environment', 'own', '--wait', '--yes');
  expect([launched.code, launched.code === 0 ? '' : launched.stdout + launched.stderr]).toEqual([0, '']);
  // The job has read the data, or it would have failed; its heartbeat is in the checkpoint bucket.
  const { Contents = [] } = await cycle.s3().send(new ListObjectsV2Command({ Bucket: BUCKETS.checkpoints }));
  expect(Contents.filter(({ Key }) => Key?.startsWith('runs/default/hello-'))).not.toEqual([]);
});

test('drift finds a bucket that was opened', async () => {
  const beyond = async () => {
    const { stdout } = await slipway('drift', 'own');
    const { beyond: found } = JSON.parse(stdout).stacks[0] as { beyond: { what: string; ok: boolean }[] };
    return found.find(({ what }) => what === 'buckets and key')?.ok;
  };
  expect(await beyond()).toBe(true);
  await cycle.s3().send(new DeletePublicAccessBlockCommand({ Bucket: BUCKETS.checkpoints }));
  expect(await beyond()).toBe(false);
});

test('the deletion leaves buckets, objects and key, with retain: false too', async () => {
  await cycle.done('destroy');
  expect([await cycle.status(), await cycle.buckets()]).toEqual([undefined, []]);
  const { Body } = await cycle.s3().send(new GetObjectCommand({ Bucket: BUCKETS.data, Key: 'shared/tokens' }));
  expect(await Body?.transformToString()).toBe('kept');
  const { KeyCount } = await cycle.s3().send(new ListObjectsV2Command({ Bucket: BUCKETS.checkpoints }));
  expect(KeyCount).toBeGreaterThan(0);
  const { KeyMetadata } = await new KMSClient(cycle.client()).send(new DescribeKeyCommand({ KeyId: keyArn }));
  expect(KeyMetadata?.KeyState).toBe('Enabled');
});
