// First deploys and refused deletions through the real CDK CLI on the embedded AWS: the quota gate, a failure at the last resource, protection
// and live runs. The last deploy and the one after it are in test/long/adoption.test.ts.
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import {
  CloudFormationClient,
  DescribeStacksCommand,
  paginateDescribeStackEvents,
} from '@aws-sdk/client-cloudformation';
import { DynamoDBClient, PutItemCommand } from '@aws-sdk/client-dynamodb';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { adminOf } from '../../../lib/sandbox/testing';
import { Cycle } from '../../e2e/support/cycle';

const P4D = 'L-09B4A649';
const QUOTAS = `quotas:
  requestIncrease: true
  require: [{ instanceType: ml.p4d.24xlarge, count: 3 }]
`;
const REFUSED = `name: refused
code: { source: ./code, entryPoint: hello.py }
compute: { instanceType: ml.p5.48xlarge, instanceCount: 1 }
distribution: { launcher: script }
limits: { maxRuntimeSeconds: 600 }
`;

let cycle: Cycle;
beforeAll(async () => {
  cycle = await Cycle.start('cycle');
  writeFileSync(path.join(cycle.sandbox.folder, 'refused.yaml'), REFUSED);
  mkdirSync(path.join(cycle.sandbox.folder, 'code'));
  writeFileSync(path.join(cycle.sandbox.folder, 'code/hello.py'), 'print("hello")\n');
});
afterAll(() => cycle?.end());

/** What the quota check of the last deploy that looked said, and when. */
async function summary(): Promise<string | undefined> {
  const describe = new DescribeStacksCommand({ StackName: cycle.stackName });
  const { Stacks } = await new CloudFormationClient(cycle.client()).send(describe);
  return Stacks?.[0]?.Outputs?.find(({ OutputKey }) => OutputKey?.startsWith('PreflightSummary'))?.OutputValue;
}

test('a deploy above the quota is refused before anything else is made, and the increase is requested', async () => {
  const { code, said } = await cycle.cdk('deploy', QUOTAS);
  expect(code).toBe(1);
  expect(said).toContain('quotas: must cover what environment cycle needs in us-west-2, got 1 too small');
  expect(said).toContain(`ml.p4d.24xlarge for training job usage (${P4D}): limit 0, needed 3`);
  expect(said).toContain('3 requested');
  expect(await cycle.buckets()).toEqual([]);
});

test('a second try files no second request', async () => {
  const { code, said } = await cycle.cdk('deploy');
  expect([code, said]).toEqual([1, expect.stringContaining('3 already requested')]);
});

test('when the increase is approved, a deploy that fails at its last resource leaves nothing', async () => {
  await adminOf(cycle.sandbox).decideIncreases('us-west-2', 'APPROVED', P4D);
  // The limit of its type is 0 in a new account: control refuses the run after the driver was published.
  const { code, said } = await cycle.cdk('deploy', `${QUOTAS}runs: [{ file: refused.yaml, submit: on-change }]\n`);
  expect([code, said]).toEqual([1, expect.stringContaining('quota')]);
  expect(await cycle.status()).toBe('ROLLBACK_COMPLETE');
  expect(await cycle.buckets()).toEqual([]);
});

test('the next one goes through', async () => {
  await cycle.done('deploy', QUOTAS);
  expect(await cycle.buckets()).toHaveLength(4);
  expect(await summary()).toMatch(/^3 enough, 0 short, 0 unknown at /);
});

test('termination protection refuses a deletion and leaves a stack that can be updated; what it needs is not compared again', async () => {
  const { code, said } = await cycle.cdk('destroy');
  expect([code, said]).toEqual([1, expect.stringContaining('TerminationProtection')]);
  expect(await cycle.status()).toMatch(/^(CREATE|UPDATE)_COMPLETE$/);
  const before = await summary();
  await adminOf(cycle.sandbox).setQuota('us-west-2', P4D, 0);
  await cycle.done(
    'deploy',
    `${QUOTAS}protection: { terminationProtection: false }\nteams: { default: {}, nlp: {} }\n`,
  );
  expect(await summary()).toBe(before);
});

test('the stack is not deleted under a live run', async () => {
  const item = { runId: { S: 'gpt-261121' }, item: { S: 'RUN' }, active: { S: 'active' } };
  const put = new PutItemCommand({ TableName: 'slipway-cycle-runs', Item: item });
  await new DynamoDBClient(cycle.client()).send(put);
  expect((await cycle.cdk('destroy')).code).toBe(1);
  expect(await cycle.status()).toBe('DELETE_FAILED');
  // The CLI may miss a reason when many events come at once.
  const reasons: (string | undefined)[] = [];
  const client = new CloudFormationClient(cycle.client());
  for await (const { StackEvents = [] } of paginateDescribeStackEvents({ client }, { StackName: cycle.stackName }))
    reasons.push(...StackEvents.map(({ ResourceStatusReason }) => ResourceStatusReason));
  const refusal = expect.stringContaining('this deletion must not hit live runs, got gpt-261121;');
  expect(reasons).toContainEqual(refusal);
});
