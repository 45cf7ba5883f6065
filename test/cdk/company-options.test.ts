// What a company asks of every stack: held against whole templates, so that a resource which comes later is held to it too.
import { CfnResource, TagManager } from 'aws-cdk-lib';
import { Template } from 'aws-cdk-lib/assertions';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { EnvironmentStack } from '../../lib/cdk';
import { ENV, resourcesOf, SYNTH_MS, specOf, statementsOf, type TemplateResource, testApp } from './support/app';

vi.setConfig({ testTimeout: SYNTH_MS, hookTimeout: SYNTH_MS });

const BASE = {
  teams: { nlp: { principals: ['arn:aws:iam::111122223333:role/nlp'] }, speech: {} },
  access: { ci: ['arn:aws:iam::111122223333:role/ci'] },
  network: { availabilityZoneIds: ['usw2-az1', 'usw2-az2'] },
  notifications: { slackChannel: { workspaceId: 'T1', channelId: 'C1' } },
};
const DEFAULTS = {
  iam: {},
  tags: {},
  secrets: {},
  logging: { kms: true, retentionDays: 90 },
  protection: { terminationProtection: true, tableDeletionProtection: false },
  network: { ...BASE.network, cidr: '10.64.0.0/16', reserved: [] },
};
const ASKED = {
  iam: {
    permissionsBoundary: 'ml-boundary',
    rolePath: '/ml/',
    rolePrefix: 'acme-',
    oidcProvider: 'arn:aws:iam::111122223333:oidc-provider/token.actions.githubusercontent.com',
    oidcSubjects: ['repo:acme/training:ref:refs/heads/main'],
  },
  tags: { CostCenter: '1234', 'acme:owner': 'ml platform' },
  secrets: { allowedPrefix: 'slipway/{team}/' },
  logging: { kms: false, retentionDays: 365 },
  protection: { tableDeletionProtection: true },
  network: { ...BASE.network, cidr: '10.80.0.0/18', reserved: ['10.64.0.0/12'] },
};

const stackOf = (more: object = {}) =>
  new EnvironmentStack(testApp(), 'Slipway', { spec: specOf({ ...BASE, ...more }), env: ENV });
const ofType = (resources: Record<string, TemplateResource>, type: string) =>
  Object.values(resources).filter((resource) => resource.Type === type);

let stack: EnvironmentStack;
let resources: Record<string, TemplateResource>;
let plain: Record<string, TemplateResource>;
beforeAll(() => {
  plain = resourcesOf(Template.fromStack(stackOf()));
  stack = stackOf(ASKED);
  resources = resourcesOf(Template.fromStack(stack));
});

test('defaults that are written out change nothing in the template', () => {
  expect(resourcesOf(Template.fromStack(stackOf(DEFAULTS)))).toEqual(plain);
});

describe('roles', () => {
  const roles = () => ofType(resources, 'AWS::IAM::Role');

  test('each has the boundary, the path and a name with the prefix that is its own', () => {
    expect(roles().length).toBeGreaterThan(20);
    for (const { Properties } of roles()) {
      expect(Properties.Path).toBe('/ml/');
      expect(JSON.stringify(Properties.PermissionsBoundary)).toContain(':iam::111122223333:policy/ml-boundary');
      expect(Properties.RoleName).toMatch(/^acme-[\w+=,.@-]{1,59}$/);
    }
    expect(new Set(roles().map(({ Properties }) => Properties.RoleName)).size).toBe(roles().length);
  });

  test('another path gives other names: the new role comes before the old one goes', () => {
    const moved = resourcesOf(Template.fromStack(stackOf({ ...ASKED, iam: { ...ASKED.iam, rolePath: '/other/' } })));
    const names = (from: Record<string, TemplateResource>) =>
      ofType(from, 'AWS::IAM::Role').map(({ Properties }) => Properties.RoleName);
    expect(names(moved).filter((name) => names(resources).includes(name))).toEqual([]);
  });

  test('a boundary alone replaces nothing: names and paths are as before', () => {
    const bounded = resourcesOf(Template.fromStack(stackOf({ iam: { permissionsBoundary: 'ml-boundary' } })));
    for (const [id, { Type, Properties }] of Object.entries(plain).filter(
      ([, { Type }]) => Type === 'AWS::IAM::Role',
    )) {
      const { PermissionsBoundary, ...rest } = bounded[id]?.Properties ?? {};
      expect([Type, rest]).toEqual([Type, Properties]);
      expect(PermissionsBoundary).toBeDefined();
    }
  });

  test('tokens of the CI system are accepted from the named subjects, for this audience', () => {
    const trust = roles().flatMap(
      ({ Properties }) => (Properties.AssumeRolePolicyDocument as { Statement: Record<string, unknown>[] }).Statement,
    );
    expect(trust.filter(({ Action }) => Action === 'sts:AssumeRoleWithWebIdentity')).toEqual([
      {
        Action: 'sts:AssumeRoleWithWebIdentity',
        Effect: 'Allow',
        Principal: { Federated: ASKED.iam.oidcProvider },
        Condition: {
          StringEquals: { 'token.actions.githubusercontent.com:aud': 'sts.amazonaws.com' },
          StringLike: { 'token.actions.githubusercontent.com:sub': ASKED.iam.oidcSubjects },
        },
      },
    ]);
  });
});

test('every resource that takes tags has them', () => {
  const taggable = stack.node
    .findAll()
    .filter((node) => CfnResource.isCfnResource(node) && TagManager.of(node) !== undefined) as CfnResource[];
  expect(taggable.length).toBeGreaterThan(50);
  for (const resource of taggable) {
    const text = JSON.stringify(resources[stack.getLogicalId(resource)]?.Properties);
    expect([resource.node.path, text]).toEqual([resource.node.path, expect.stringMatching(/CostCenter.*1234/)]);
  }
});

test('jobs get the tags and the prefix of secrets through the descriptor of their team', () => {
  const values = ofType(resources, 'AWS::SSM::Parameter').map(({ Properties }) => Properties.Value);
  const text = JSON.stringify(values).replaceAll('\\', '');
  expect(text).toContain('"tags":{"CostCenter":"1234","acme:owner":"ml platform"}');
  expect(text).toContain('slipway/nlp/');
  expect(text).toContain('slipway/speech/');
});

test("the roles of a team's jobs may read secrets below its prefix, and no others", () => {
  for (const role of ['nlpexecution', 'nlpprocessing']) {
    const found = statementsOf(resources, role).filter(({ Sid }) => /^ReadSecret/.test(String(Sid)));
    const text = JSON.stringify(found.map(({ Action, Resource }) => [Action, Resource]));
    expect(found).toHaveLength(2);
    expect(text).toContain(':secretsmanager:us-west-2:111122223333:secret:slipway/nlp/*');
    expect(text).toContain(':ssm:us-west-2:111122223333:parameter/slipway/nlp/*');
  }
  expect(JSON.stringify(plain)).not.toContain('secretsmanager:GetSecretValue');
});

test('log groups keep lines for the days that are asked for, without a key of the stack', () => {
  const groups = ofType(resources, 'AWS::Logs::LogGroup');
  expect(groups.length).toBeGreaterThan(2);
  for (const { Properties } of groups) expect(Properties).toMatchObject({ RetentionInDays: 365 });
  expect(groups.filter(({ Properties }) => 'KmsKeyId' in Properties)).toEqual([]);
});

test('the run table refuses its deletion', () => {
  expect(
    ofType(resources, 'AWS::DynamoDB::Table').map(({ Properties }) => Properties.DeletionProtectionEnabled),
  ).toEqual([true]);
});

test('VPC, subnets and the rule of endpoints lie in the block that is asked for', () => {
  expect(ofType(resources, 'AWS::EC2::VPC').map(({ Properties }) => Properties.CidrBlock)).toEqual(['10.80.0.0/18']);
  expect(ofType(resources, 'AWS::EC2::Subnet').map(({ Properties }) => Properties.CidrBlock)).toEqual([
    '10.80.0.0/21',
    '10.80.8.0/21',
  ]);
});
