// Sizes of everything that a deployment sends, over environments drawn up to the maxima of the schema and in every partition.
import { Template } from 'aws-cdk-lib/assertions';
import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { EnvironmentStack } from '../../lib/cdk';
import { REGIONS } from '../../lib/core/catalog/regions';
import { MAX_TEAMS_WITH_GROUPS } from '../../lib/core/config/environment/network';
import { resolveEnvironments } from '../../lib/core/config/environment-file';
import { loadEnvironment } from '../../lib/core/config/load';
import { checkEnvironment } from '../../lib/core/rules/environment';
import { measureTemplate, type SentTemplate, sizeIssues } from '../../lib/shared/environment/template-sizes';
import { testApp } from '../cdk/support/app';
import { draws } from '../support/draws';

vi.setConfig({ testTimeout: 900_000 });

const ACCOUNT = '111122223333';
/** One region of each partition. */
const PLACES = Object.entries(REGIONS)
  .filter(([, { partition }], i, all) => all.findIndex(([, other]) => other.partition === partition) === i)
  .map(([region]) => region);

interface Size {
  region: string;
  teams: number;
  principals: number;
  external: number;
  ownKeys: boolean;
  audited: boolean;
  budgets: boolean;
  channels: boolean;
  dashboards: boolean;
  rolePath: string;
  zones: number;
  network: object;
  retain: boolean;
}

function fileOf(size: Size): object {
  const partition = REGIONS[size.region]?.partition ?? 'aws';
  const role = (name: string) => `arn:${partition}:iam::${ACCOUNT}:role/people/of-the-company/${name}`;
  const key = `arn:${partition}:kms:${size.region}:444455556666:key/00000000-0000-0000-0000-000000000000`;
  const range = (count: number) => Array.from({ length: count }, (_, i) => i);
  const team = (i: number) => ({
    principals: range(size.principals).map((j) => role(`researcher-${i}-${j}`)),
    data: [`corpora-${i}/`],
    ...(size.ownKeys && { kmsKey: 'own' }),
    ...(size.budgets && { budgetUsdPerMonth: 1000, notifications: { emails: [`team-${i}@example.com`] } }),
    // A channel of its own, which partition aws alone has.
    ...(size.channels &&
      partition === 'aws' && {
        notifications: { slackChannel: { workspaceId: 'T0123ABCD', channelId: `C0123ABCD${i}` } },
      }),
    ...(size.dashboards && { dashboards: true }),
  });
  return {
    name: 'research',
    account: ACCOUNT,
    regions: { [size.region]: {} },
    teams: Object.fromEntries(range(size.teams).map((i) => [`teamnumber${String(i).padStart(2, '0')}`, team(i)])),
    network: size.network,
    storage: {
      retain: size.retain,
      external: range(size.external).map((i) => ({
        s3: `s3://lake-of-the-company-${i}/some/prefix-${i}/`,
        access: i % 2 ? 'read' : 'read-write',
        ...(i % 3 && { kmsKeyArn: key }),
      })),
    },
    ...(size.audited && { access: { platformAdmins: [role('a')], auditors: [role('b')], ci: [role('c')] } }),
    ...(size.rolePath && { iam: { rolePath: size.rolePath, rolePrefix: 'acme-' } }),
    image: { uri: `${ACCOUNT}.dkr.ecr.${size.region}.${REGIONS[size.region]?.domain}/own:1` },
  };
}

/** The template of an environment, or the reason why it is refused, by a rule or when it is measured. */
function made(size: Size): SentTemplate | string {
  const { value, issues } = loadEnvironment(JSON.stringify(fileOf(size)));
  if (!value) throw new Error(JSON.stringify(issues));
  const errors = checkEnvironment(value).filter(({ level }) => level === 'error');
  if (errors.length > 0) return errors.map(({ message }) => message).join('\n');
  const [spec] = resolveEnvironments(value);
  if (!spec) throw new Error('no region');
  const { region } = size;
  const zones = 'abcdef'.slice(0, size.zones).split('');
  const context = { [`availability-zones:account=${ACCOUNT}:region=${region}`]: zones.map((zone) => region + zone) };
  const stack = new EnvironmentStack(testApp(context), `Slipway-research-${region}`, {
    spec,
    env: { account: ACCOUNT, region },
  });
  try {
    return Template.fromStack(stack).toJSON() as SentTemplate;
  } catch (error) {
    return (error as Error).message;
  }
}

const measureOf = (template: SentTemplate, region: string) =>
  measureTemplate(template, { stack: `Slipway-research-${region}`, account: ACCOUNT, region });

const SMALL: Size = {
  ...{ region: 'us-west-2', teams: 1, principals: 0, external: 0, ownKeys: false, audited: false, budgets: false },
  ...{ channels: false, dashboards: false, rolePath: '', zones: 3, network: {}, retain: true },
};
const LARGE: Size = { ...SMALL, teams: 30, principals: 5, external: 60, ownKeys: true, audited: true, zones: 6 };

// The partition with the longest ARNs; all of them in the long tests.
test.each(draws(1) > 1 ? PLACES : ['us-gov-east-1'])(
  '30 teams with own keys, five principals each and 60 external locations fit in %s',
  (region) => {
    const template = made({ ...LARGE, region });
    expect(typeof template === 'string' ? template : '').toBe('');
    const issues = sizeIssues(measureOf(template as SentTemplate, region));
    expect(issues).toEqual([]);
  },
);

test('as many teams as have security groups of their own fit with every option', () => {
  const every = { ...LARGE, teams: MAX_TEAMS_WITH_GROUPS, budgets: true, channels: true, dashboards: true };
  const template = made(every);
  expect(typeof template === 'string' ? template : '').toBe('');
  const { Resources = {} } = template as SentTemplate;
  expect(Object.values(Resources).filter(({ Type }) => Type === 'AWS::EC2::SecurityGroup')).toHaveLength(
    MAX_TEAMS_WITH_GROUPS + 1,
  );
});

const EXISTING = {
  vpcId: 'vpc-0123456789abcdef0',
  subnetIds: ['a', 'b', 'c'].map((letter) => `subnet-${letter.repeat(17)}`),
  securityGroupIds: ['sg-0123456789abcdef0'],
};
const sizes = fc.record<Size>({
  region: fc.constantFrom(...PLACES),
  teams: fc.integer({ min: 1, max: 31 }),
  principals: fc.integer({ min: 0, max: 30 }),
  external: fc.constantFrom(0, 1, 5, 6, 20, 60, 90),
  ownKeys: fc.boolean(),
  audited: fc.boolean(),
  budgets: fc.boolean(),
  channels: fc.boolean(),
  dashboards: fc.boolean(),
  rolePath: fc.constantFrom('', '/ml/', `/${'d'.repeat(500)}/`),
  zones: fc.integer({ min: 1, max: 6 }),
  network: fc.constantFrom<object>(
    ...[{}, { mode: 'vpc-nat' }, { mode: 'none' }, { endpoints: ['ecr', 'sts', 'logs'] }],
    { mode: 'existing', existing: EXISTING },
  ),
  retain: fc.boolean(),
});

test('every environment that is not refused with the option to change is accepted by the services', () => {
  const refused: string[] = [];
  fc.assert(
    fc.property(sizes, (size) => {
      const template = made(size);
      if (typeof template === 'string') refused.push(template);
      if (typeof template === 'string')
        for (const line of template.split('\n'))
          expect(line).toMatch(/^(teams(\.\w+\.principals)?|storage\.external|iam|access\.\w+): must .+, got .+; .+/);
      else expect(sizeIssues(measureOf(template, size.region))).toEqual([]);
    }),
    { numRuns: draws(10), verbose: 1 },
  );
  expect(refused.length).toBeGreaterThan(0);
});

describe('the measure', () => {
  const of = (Resources: NonNullable<SentTemplate['Resources']>) =>
    sizeIssues(measureOf({ Resources }, 'us-west-2')).map(({ message }) => message);
  const statement = (bytes: number) => ({ Statement: [{ Sid: 'x'.repeat(bytes) }] });

  test('names tags when they take most of a template', () => {
    const Tags = Array.from({ length: 40 }, (_, i) => ({ Key: `key${i}`, Value: 'v'.repeat(250) }));
    const Resources = (Properties: Record<string, unknown>) =>
      Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`R${i}`, { Type: 'AWS::SQS::Queue', Properties }]));
    const optionOf = (message = '') => message.split(':')[0];
    expect(of(Resources({ Tags })).map(optionOf)).toEqual(['tags']);
    expect(of(Resources({ Policy: 'p'.repeat(11_000) })).map(optionOf)).toEqual(['teams']);
  });

  test.each([
    [{ tags: { owner: 'x'.repeat(9000) }, external: ['x'.repeat(500)] }, 'tags'],
    [{ tags: { owner: 'x' }, external: ['x'.repeat(9000)] }, 'storage.external'],
    [{ controlAliasArn: 'x'.repeat(5000), prices: { a: 'x'.repeat(4000) } }, 'prices'],
  ])('names the option that takes most of a descriptor', (descriptor, option) => {
    const Value = JSON.stringify(descriptor);
    const Parameter = { Type: 'AWS::SSM::Parameter', Properties: { Name: '/a', Tier: 'Intelligent-Tiering', Value } };
    expect(of({ Parameter })).toEqual([
      expect.stringMatching(new RegExp(`^${option}: must make parameter /a of at most 8,192 bytes, got `)),
    ]);
  });

  test('adds the inline policies of a role, with references as long as they may be', () => {
    const Role = { Type: 'AWS::IAM::Role', Properties: { RoleName: 'slipway-a-b-c-execution' } };
    const policy = (bytes: number) => ({
      Type: 'AWS::IAM::Policy',
      Properties: { Roles: [{ Ref: 'Role' }], PolicyDocument: statement(bytes) },
    });
    expect(of({ Role, One: policy(5000), Two: policy(5000) })).toEqual([]);
    expect(of({ Role, One: policy(5000), Two: policy(5300) })).toEqual([
      'teams: must make inline policies of role slipway-a-b-c-execution of at most 10,240 bytes, got 10,352; move some of the teams to a second environment',
    ]);
    const key = { Type: 'AWS::KMS::Key', Properties: {} };
    const many = { Resource: Array.from({ length: 150 }, () => ({ 'Fn::GetAtt': ['Key', 'Arn'] })) };
    const One = { Type: 'AWS::IAM::Policy', Properties: { Roles: [{ Ref: 'Role' }], PolicyDocument: many } };
    expect(of({ Role, Key: key, One })).toHaveLength(1);
  });

  test.each([
    ['AWS::SSM::Parameter', { Name: '/a', Value: 'x'.repeat(4097) }],
    ['AWS::SSM::Parameter', { Name: '/a', Tier: 'Intelligent-Tiering', Value: 'x'.repeat(8193) }],
    ['AWS::Lambda::Function', { Environment: { Variables: { A: 'x'.repeat(4096) } } }],
    ['AWS::KMS::Key', { KeyPolicy: statement(32_768) }],
    ['AWS::S3::BucketPolicy', { PolicyDocument: statement(20_480) }],
    ['AWS::EC2::VPCEndpoint', { PolicyDocument: statement(20_480) }],
    ['AWS::SNS::TopicPolicy', { PolicyDocument: statement(30_720) }],
    ['AWS::IAM::ManagedPolicy', { PolicyDocument: statement(6_144) }],
    ['AWS::IAM::Role', { AssumeRolePolicyDocument: statement(2_048) }],
    ['AWS::IAM::Role', { RoleName: 'x'.repeat(65) }],
    ['AWS::S3::Bucket', { Tags: Array.from({ length: 51 }, (_, i) => ({ Key: `k${i}`, Value: '' })) }],
    ['Custom::SlipwayQuotaPreflight', { needs: 'x'.repeat(262_144) }],
    [
      'AWS::Budgets::Budget',
      { NotificationsWithSubscribers: [{ Subscribers: Array(11).fill({ SubscriptionType: 'EMAIL' }) }] },
    ],
  ])('fails: %s beyond the limit of its service', (Type, Properties) => {
    expect(of({ One: { Type, Properties } })).toHaveLength(1);
  });
});
