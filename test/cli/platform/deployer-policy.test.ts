import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Template } from 'aws-cdk-lib/assertions';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { EnvironmentStack } from '../../../lib/constructs';
import { ENV, resourcesOf, SYNTH_MS, specOf, testApp } from '../../constructs/support/app';
import { runCli } from '../../support/run-cli';

vi.setConfig({ testTimeout: SYNTH_MS });

/** Where the name of a service in a resource type is not the prefix of its actions. */
const PREFIXES: Readonly<Record<string, string>> = { StepFunctions: 'states' };
const OPTIONS = {
  name: 'lab',
  account: '111122223333',
  regions: { 'us-west-2': {}, 'us-east-1': {} },
  network: { mode: 'vpc-nat' },
  iam: { permissionsBoundary: 'ml-boundary', rolePath: '/ml/', rolePrefix: 'acme-' },
  budget: { monthlyUsd: 100, emails: ['a@example.com'] },
  notifications: { slackChannel: { workspaceId: 'T1', channelId: 'C1' } },
};
interface Statement {
  Sid: string;
  Action: string[];
  Resource: string[];
  Condition?: object;
}

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'slipway-deployer-'));
  writeFileSync(path.join(folder, 'lab.yaml'), JSON.stringify(OPTIONS));
});
afterAll(() => rmSync(folder, { recursive: true }));

async function answer(...args: string[]) {
  const { code, stdout } = await runCli('deployer-policy', path.join(folder, 'lab.yaml'), '--json', ...args);
  const parsed = JSON.parse(stdout) as Record<'deployer' | 'execution', { Statement: Statement[] }> & {
    bootstrap: string[];
  };
  return { code, ...parsed };
}

test('who deploys only takes on the roles of the bootstrap stacks', async () => {
  const { code, deployer } = await answer('--region', 'us-west-2');
  expect(code).toBe(0);
  expect(deployer.Statement.map(({ Action, Resource }) => [Action, Resource])).toEqual([
    [
      ['sts:AssumeRole'],
      ['deploy', 'file-publishing', 'lookup'].map(
        (use) => `arn:aws:iam::111122223333:role/cdk-hnb659fds-${use}-role-111122223333-us-west-2`,
      ),
    ],
  ]);
});

test('the bootstrap command names the policy and the boundary, for each region', async () => {
  expect((await answer()).bootstrap).toEqual(
    ['us-west-2', 'us-east-1'].map(
      (region) =>
        `npx cdk bootstrap aws://111122223333/${region} --cloudformation-execution-policies arn:aws:iam::111122223333:policy/slipway-lab-deploy --custom-permissions-boundary ml-boundary`,
    ),
  );
});

test('roles are made with the boundary only, below the path and with the prefix', async () => {
  const { execution } = await answer();
  expect(execution.Statement.find(({ Sid }) => Sid === 'MakeRoles')).toMatchObject({
    Resource: ['arn:aws:iam::111122223333:role/ml/acme-*'],
    Condition: { StringEquals: { 'iam:PermissionsBoundary': 'arn:aws:iam::111122223333:policy/ml-boundary' } },
  });
});

test('every service of the stack is in the policy of CloudFormation, and it fits into a managed policy', async () => {
  const { execution } = await answer('--region', 'us-west-2');
  const stack = new EnvironmentStack(testApp(), 'Slipway-lab-us-west-2', { spec: specOf(OPTIONS), env: ENV });
  const types = Object.values(resourcesOf(Template.fromStack(stack))).map(({ Type }) => Type);
  const services = types.filter((type) => type.startsWith('AWS::')).map((type) => type.split('::')[1] ?? '');
  const prefixes = [...new Set(services)].filter((name) => !['CDK', 'CloudFormation'].includes(name));
  const allowed = execution.Statement.flatMap(({ Action }) => Action).map((action) => action.split(':')[0]);
  expect(prefixes.length).toBeGreaterThan(12);
  expect(
    prefixes.map((name) => PREFIXES[name] ?? name.toLowerCase()).filter((name) => !allowed.includes(name)),
  ).toEqual([]);
  expect(JSON.stringify(execution).length).toBeLessThan(6144);
});

test('fails: neither a file nor an environment', async () => {
  const { code, stderr } = await runCli('deployer-policy', 'nowhere');
  expect([code, stderr]).toEqual([
    2,
    expect.stringContaining('nowhere: must be a file, or the name of an environment'),
  ]);
});
