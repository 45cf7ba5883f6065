// An environment from its first deploy to its end under exactly what `slipway deployer-policy` prints: its policies, its boundary and its
// bootstrap command, on the embedded AWS, whose CloudFormation has no other permission than those of its role.
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { CreatePolicyCommand, IAMClient } from '@aws-sdk/client-iam';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Cycle, sections } from '../e2e/support/cycle';
import type { TestSandbox } from '../e2e/support/sandbox';
import type { EnvironmentValues } from '../laws/support/family';
import { runCli } from '../support/run-cli';

const ACCOUNT = '000000000000';
const BOUNDARY = 'slipway-least-boundary';
const FILE: EnvironmentValues = {
  ...{ account: ACCOUNT, iam: { permissionsBoundary: BOUNDARY }, teams: { default: {}, nlp: { kmsKey: 'own' } } },
  ...{ network: { mode: 'vpc-locked' }, protection: { terminationProtection: false }, storage: { retain: false } },
};
type Policy = { Statement: { Sid?: string; Action: string[] }[] };

/** Makes the policies that the verb prints; answers the options of the bootstrap command that it prints. */
async function asPrinted(sandbox: TestSandbox, name: string, without?: string): Promise<readonly string[]> {
  const file = path.join(sandbox.folder, `${name}.yaml`);
  writeFileSync(file, `name: ${name}\nregions: { us-west-2: {} }\n${sections({ ...FILE, iam: {} })}`);
  const { stdout } = await runCli('deployer-policy', file, '--json');
  const printed = JSON.parse(stdout) as Record<'boundary' | 'execution', Policy> & {
    furtherExecution?: Policy[];
    bootstrap: string[];
  };
  const iam = new IAMClient({
    ...{ endpoint: sandbox.endpoints.aws, region: 'us-west-2' },
    credentials: { accessKeyId: ACCOUNT, secretAccessKey: 'test' },
  });
  const [command = ''] = printed.bootstrap;
  const words = command.split(' ');
  const names = words[words.indexOf('--cloudformation-execution-policies') + 1]?.split(',') ?? [];
  const documents = [printed.execution, ...(printed.furtherExecution ?? [])];
  const least = documents.map(({ Statement, ...document }) => ({
    ...document,
    Statement: Statement.map((one) => ({ ...one, Action: one.Action.filter((action) => action !== without) })),
  }));
  const all = [
    ...names.map((arn, i) => [arn.split('/').at(-1), least[i]] as const),
    [BOUNDARY, printed.boundary] as const,
  ];
  for (const [PolicyName, document] of all)
    await iam.send(new CreatePolicyCommand({ PolicyName, PolicyDocument: JSON.stringify(document) }));
  return words.slice(words.indexOf('--cloudformation-execution-policies'));
}

let cycle: Cycle;
beforeAll(async () => {
  cycle = await Cycle.start('least', undefined, (sandbox) => asPrinted(sandbox, 'least'));
});
afterAll(() => cycle?.end());

test('deploys', async () => {
  await cycle.done('deploy', sections(FILE));
  expect(await cycle.status()).toBe('CREATE_COMPLETE');
});

test('updates, also what an update replaces', async () => {
  await cycle.done('deploy', sections({ ...FILE, teams: { default: {}, speech: {} }, budget: { monthlyUsd: 100 } }));
  expect(await cycle.status()).toBe('UPDATE_COMPLETE');
});

test('takes back an update that fails at its end', async () => {
  cycle.failAtTheEnd(await cycle.synth(sections({ ...FILE, network: { mode: 'vpc-nat' } })));
  expect((await cycle.cdk('deploy')).code).toBe(1);
  expect(await cycle.status()).toBe('UPDATE_ROLLBACK_COMPLETE');
});

test('is deleted', async () => {
  await cycle.done('destroy');
  expect(await cycle.status()).toBeUndefined();
});

test('fails: without one of the printed actions', async () => {
  const lacking = await Cycle.start('least', undefined, (sandbox) =>
    asPrinted(sandbox, 'least', 'iam:AttachRolePolicy'),
  );
  try {
    const { code, said } = await lacking.cdk('deploy', sections(FILE));
    expect([code, said]).toEqual([
      1,
      expect.stringMatching(/not authorized to perform: iam:AttachRolePolicy on resource: arn:aws:iam/),
    ]);
    expect(await lacking.status()).toBe('ROLLBACK_COMPLETE');
  } finally {
    await lacking.end();
  }
});
