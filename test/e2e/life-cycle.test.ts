// First deploy, second deploy and last, through the real CDK CLI on the embedded AWS.
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import {
  DeleteBucketPolicyCommand,
  GetBucketPolicyCommand,
  GetObjectCommand,
  PutObjectCommand,
} from '@aws-sdk/client-s3';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Cycle } from './support/cycle';

const DATA = 'slipway-cycle-000000000000-us-west-2-data';
const NOTHING_REQUIRED = `quotas: { enforce: "off" }\n`;

let cycle: Cycle;
beforeAll(async () => {
  cycle = await Cycle.start('cycle');
});
afterAll(() => cycle?.end());

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
  const unprotected = `${NOTHING_REQUIRED}protection: { terminationProtection: false }\nteams: { default: {}, nlp: {} }\n`;
  await cycle.done('deploy', unprotected);
});

test('what is retained is adopted with its policies, and the data is there', async () => {
  await cycle.s3().send(new PutObjectCommand({ Bucket: DATA, Key: 'shared/tokens', Body: 'kept' }));
  await cycle.done('destroy');
  expect(await cycle.status()).toBeUndefined();
  expect(await cycle.buckets()).toHaveLength(4);
  const policyOf = async () => (await cycle.s3().send(new GetBucketPolicyCommand({ Bucket: DATA }))).Policy ?? '';
  expect(await policyOf()).toContain('aws:SecureTransport');

  // As a stack of version 0.1.0 left it.
  await cycle.s3().send(new DeleteBucketPolicyCommand({ Bucket: DATA }));
  const adopting = `${NOTHING_REQUIRED}storage: { adopt: true }\nprotection: { terminationProtection: false }\n`;
  await cycle.done('deploy', adopting);
  expect(await policyOf()).toContain('aws:SecureTransport');
  const { Body } = await cycle.s3().send(new GetObjectCommand({ Bucket: DATA, Key: 'shared/tokens' }));
  expect(await Body?.transformToString()).toBe('kept');
});

test('fails: a deploy without adopt where an earlier one left its buckets', async () => {
  await cycle.done('destroy');
  expect((await cycle.cdk('deploy', NOTHING_REQUIRED)).code).toBe(1);
});
