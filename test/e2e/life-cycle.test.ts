// First deploy, second deploy and a refused deletion, through the real CDK CLI on the embedded AWS; the last deploy and the one after it are in
// test/long/adoption.test.ts.
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Cycle } from './support/cycle';

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
