import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Template } from 'aws-cdk-lib/assertions';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { EnvironmentStack } from '../../../lib/cdk';
import { DEPLOY_ACTIONS } from '../../../lib/cli/environment/checks/deployer-permissions';
import { ENV, resourcesOf, SYNTH_MS, specOf, testApp } from '../../cdk/support/app';
import { HANDLERS } from '../../support/handler-permissions';
import { runCli } from '../../support/run-cli';
import { policiesOf } from '../../templates/laws/authorization';
import { specs, synthesise } from '../../templates/support/templates';

vi.setConfig({ testTimeout: SYNTH_MS });

const KEY = 'arn:aws:kms:us-west-2:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab';
const OPTIONS = {
  name: 'lab',
  account: '111122223333',
  regions: {
    'us-west-2': {},
    'us-east-1': { notifications: { slackChannel: { workspaceId: 'T1', channelId: 'C2' } } },
  },
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
    boundary?: { Statement: Statement[] };
    furtherExecution?: { Statement: Statement[] }[];
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

test('the bootstrap command names the policies, for each region, and sets no boundary on the role of CloudFormation', async () => {
  expect((await answer()).bootstrap).toEqual(
    ['us-west-2', 'us-east-1'].map(
      (region) =>
        `npx cdk bootstrap aws://111122223333/${region} --cloudformation-execution-policies arn:aws:iam::111122223333:policy/slipway-lab-deploy,arn:aws:iam::111122223333:policy/slipway-lab-deploy-2`,
    ),
  );
});

test('the text says how every role of the bootstrap stack gets the boundary that a company requires', async () => {
  const { stderr } = await runCli('deployer-policy', path.join(folder, 'lab.yaml'));
  expect(stderr).toContain('--apply-permissions-boundary-to-all-roles --custom-permissions-boundary');
});

test('roles are made with the boundary only, below the path and with the prefix', async () => {
  const { execution } = await answer();
  expect(execution.Statement.find(({ Sid }) => Sid === 'MakeRoles')).toMatchObject({
    Resource: ['arn:aws:iam::111122223333:role/ml/acme-*'],
    Condition: { StringEquals: { 'iam:PermissionsBoundary': 'arn:aws:iam::111122223333:policy/ml-boundary' } },
  });
});

/** Actions on resources outside the stack, or of a kind that the account has one of. */
const ELSEWHERE: readonly string[] = ['iam:CreateServiceLinkedRole', 'iam:PutRolePolicy'];

const pattern = (text: string) =>
  new RegExp(`^${text.replace(/[.+?^$()|[\]\\]/g, '\\$&').replaceAll('*', '.*')}$`, 'i');
/** Whether a statement can allow an action that is authorized on ARNs of these formats; on none: on `*` alone. */
function canAllow({ Action, Resource }: Statement, action: string, formats: readonly string[]): boolean {
  if (!Action.some((one) => pattern(one).test(action))) return false;
  const places = formats.map((format) => new RegExp(`^${format.replace(/\$\{\w+\}/g, '.*').replaceAll('*', '.*')}$`));
  const texts = (one: string) => ['x', 'x:x', 'x/x'].map((text) => one.replaceAll('*', text));
  return Resource.some((one) => one === '*' || places.some((place) => texts(one).some((text) => place.test(text))));
}

/** Everything that an environment can have. */
const EVERYTHING = {
  ...OPTIONS,
  network: { mode: 'vpc-nat', availabilityZoneIds: ['usw2-az1', 'usw2-az2'] },
  storage: { fsxLustre: { sizeGiB: 1200, zoneId: 'usw2-az2' }, kmsKeyArn: KEY },
  teams: Object.fromEntries('abcdefghijkl'.split('').map((name) => [name, { kmsKey: name === 'a' ? KEY : 'shared' }])),
};

test('CloudFormation may do what its handlers of every resource type of the stack need', async () => {
  writeFileSync(path.join(folder, 'lab.yaml'), JSON.stringify({ ...EVERYTHING, regions: { 'us-west-2': {} } }));
  const { execution } = await answer('--region', 'us-west-2');
  writeFileSync(path.join(folder, 'lab.yaml'), JSON.stringify(OPTIONS));
  const spec = specOf({ ...EVERYTHING, regions: { 'us-west-2': {} } });
  const stack = new EnvironmentStack(testApp(), 'Slipway-lab-us-west-2', { spec, env: ENV });
  const types = new Set(Object.values(resourcesOf(Template.fromStack(stack))).map(({ Type }) => Type));
  const own = [...types].filter((type) => type.startsWith('AWS::') && !type.startsWith('AWS::CDK'));
  expect(own).toEqual(
    expect.arrayContaining(['AWS::IAM::ManagedPolicy', 'AWS::FSx::FileSystem', 'AWS::EC2::NatGateway']),
  );
  expect(own.filter((type) => !HANDLERS[type])).toEqual([]);
  const missing = own.flatMap((type) =>
    Object.entries(HANDLERS[type] ?? {}).flatMap(([action, formats]) => {
      const isAllowed = execution.Statement.some((one) =>
        canAllow(one, action, ELSEWHERE.includes(action) ? [] : formats),
      );
      const isElsewhere =
        ELSEWHERE.includes(action) && execution.Statement.some(({ Action }) => Action.includes(action));
      return isAllowed || isElsewhere ? [] : [`${type}: ${action}`];
    }),
  );
  expect(missing).toEqual([]);
  // A key that the file names has no tag of the environment.
  expect(execution.Statement.filter(({ Resource }) => Resource.includes(KEY)).flatMap(({ Action }) => Action)).toEqual(
    expect.arrayContaining(['kms:CreateGrant', 'kms:DescribeKey']),
  );
  expect(JSON.stringify(execution).length).toBeLessThan(6144);
});

test('FSx may link a file system to an existing bucket, with a role of its own', async () => {
  const storage = { fsxLustre: { sizeGiB: 1200, zoneId: 'usw2-az2' }, buckets: { data: 'company-data' } };
  const file = { ...OPTIONS, regions: { 'us-west-2': {} }, network: EVERYTHING.network, storage };
  writeFileSync(path.join(folder, 'lab.yaml'), JSON.stringify(file));
  const { execution, furtherExecution = [] } = await answer();
  writeFileSync(path.join(folder, 'lab.yaml'), JSON.stringify(OPTIONS));
  const all = [execution, ...furtherExecution].flatMap(({ Statement }) => Statement);
  const on = (arn: string) => all.filter(({ Resource }) => Resource.includes(arn)).flatMap(({ Action }) => Action);
  expect(on('arn:aws:s3:::company-data/*')).toEqual(['s3:Get*', 's3:List*', 's3:PutObject']);
  expect(on('arn:aws:iam::111122223333:role/aws-service-role/s3.data-source.lustre.fsx.*')).toEqual(
    expect.arrayContaining(['iam:AttachRolePolicy', 'iam:PutRolePolicy']),
  );
});

test('the simulation of preflight asks for an action of each service of the policy', async () => {
  const { execution, furtherExecution = [] } = await answer();
  const all = [execution, ...furtherExecution].flatMap(({ Statement }) => Statement.flatMap(({ Action }) => Action));
  const services = (actions: readonly string[]) => new Set(actions.map((action) => action.split(':')[0]));
  // Endpoints with a private name get a hosted zone by the call that makes them.
  const asked = services([...DEPLOY_ACTIONS, 'route53:AssociateVPCWithHostedZone']);
  expect([...services(all)].filter((service) => !asked.has(service))).toEqual([]);
});

test('the policies of an environment in two regions fit into managed policies, which the bootstrap command names', async () => {
  const { execution, furtherExecution = [], bootstrap } = await answer();
  expect(furtherExecution).toHaveLength(1);
  for (const one of [execution, ...furtherExecution]) expect(JSON.stringify(one).length).toBeLessThanOrEqual(6144);
  expect(bootstrap[0]).toContain('policy/slipway-lab-deploy,arn:aws:iam::111122223333:policy/slipway-lab-deploy-2');
});

test('without a boundary of the company the verb prints one, which allows every role of the stack and no change of IAM', async () => {
  const bare = { name: 'lab', account: '111122223333', regions: { 'us-west-2': {} } };
  writeFileSync(path.join(folder, 'lab.yaml'), JSON.stringify(bare));
  const { boundary, execution, bootstrap } = await answer();
  const text = await runCli('deployer-policy', path.join(folder, 'lab.yaml'));
  writeFileSync(path.join(folder, 'lab.yaml'), JSON.stringify(OPTIONS));
  expect(text.stderr).toContain('iam: { permissionsBoundary: slipway-lab-boundary }');
  expect(bootstrap[0]).not.toContain('boundary');
  expect(execution.Statement.find(({ Sid }) => Sid === 'MakeRoles')?.Condition).toEqual({
    StringEquals: { 'iam:PermissionsBoundary': 'arn:aws:iam::111122223333:policy/slipway-lab-boundary' },
  });
  const needed = Object.values(specs()).flatMap((spec) =>
    policiesOf(synthesise(spec)).flatMap(([id, statements]) =>
      synthesise(spec)[id]?.Type === 'AWS::IAM::Policy' ? statements : [],
    ),
  );
  const actions = new Set(
    needed.filter(({ Effect }) => Effect === 'Allow').flatMap(({ Action }) => [Action ?? []].flat()),
  );
  expect(actions.size).toBeGreaterThan(60);
  const allowed = boundary?.Statement.flatMap(({ Action }) => Action) ?? [];
  expect([...actions].filter((action) => !allowed.some((one) => pattern(one).test(action)))).toEqual([]);
  for (const action of [
    'iam:CreateRole',
    'iam:PutRolePolicy',
    'iam:AttachRolePolicy',
    'iam:CreateUser',
    'lambda:CreateFunction',
  ])
    expect(allowed.filter((one) => pattern(one).test(action))).toEqual([]);
});

test('fails: neither a file nor an environment', async () => {
  const { code, stderr } = await runCli('deployer-policy', 'nowhere');
  expect([code, stderr]).toEqual([
    2,
    expect.stringContaining('nowhere: must be a file, or the name of an environment'),
  ]);
});
