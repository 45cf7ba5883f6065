import { Match, Template } from 'aws-cdk-lib/assertions';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { EnvironmentStack } from '../../lib/cdk';
import { ENV, everythingBefore, resourcesOf, SYNTH_MS, specOf, type TemplateResource, testApp } from './support/app';

vi.setConfig({ testTimeout: SYNTH_MS });

/** The roles of a permission set, in whatever region Identity Center is. */
const AUDITORS = 'arn:aws:iam::444455556666:role/aws-reserved/sso.amazonaws.com/*AWSReservedSSO_Auditor_*';
const plan = (name: string) => `arn:aws:sagemaker:us-west-2:111122223333:training-plan/${name}`;
const RESEARCH = {
  quotas: { require: [{ instanceType: 'ml.p4d.24xlarge', count: 64, usage: 'training' }] },
  teams: {
    nlp: {
      principals: ['arn:aws:iam::111122223333:role/nlp'],
      share: 2,
      trainingPlans: [plan('of-nlp'), plan('of-both')],
    },
    speech: { trainingPlans: [plan('of-both')] },
  },
  access: {
    platformAdmins: ['arn:aws:iam::111122223333:role/admin'],
    auditors: [AUDITORS, 'arn:aws:iam::111122223333:role/auditor'],
    ci: ['arn:aws:iam::111122223333:role/ci'],
  },
  guardrails: { maxInstancesPerRun: 16, allowRemoteDebug: true },
  budget: { monthlyUsd: 1000, emails: ['a@example.com'] },
  notifications: { emails: ['a@example.com'] },
  network: { availabilityZoneIds: ['usw2-az1', 'usw2-az2'] },
  storage: {
    fsxLustre: { sizeGiB: 1200, zoneId: 'usw2-az2' },
    external: [
      {
        s3: 's3://lake/tokens/',
        kmsKeyArn: 'arn:aws:kms:us-west-2:444455556666:key/1234abcd-12ab-34cd-56ef-1234567890ab',
      },
    ],
  },
};

function stackOf(more: object = {}, context: Record<string, unknown> = {}): EnvironmentStack {
  return new EnvironmentStack(testApp(context), 'Slipway', { spec: specOf({ ...RESEARCH, ...more }), env: ENV });
}

/** Types that hold data or have a standing cost; nothing of them may be there when a quota is short. */
const STATEFUL = [
  'AWS::S3::Bucket',
  'AWS::KMS::Key',
  'AWS::DynamoDB::Table',
  'AWS::EC2::VPC',
  'AWS::EC2::VPCEndpoint',
  'AWS::FSx::FileSystem',
  'AWS::ECR::Repository',
  'AWS::SQS::Queue',
  'AWS::SNS::Topic',
  'AWS::Budgets::Budget',
];
/** What the embedded AWS cannot deploy (facts of the emulator). */
const NOT_IN_SANDBOX = [
  'AWS::EC2::SecurityGroupIngress',
  'AWS::EC2::SecurityGroupEgress',
  'AWS::EC2::FlowLog',
  'AWS::FSx::FileSystem',
  'AWS::FSx::DataRepositoryAssociation',
  'AWS::Budgets::Budget',
  'Custom::VpcRestrictDefaultSG',
  'Custom::SlipwayTrainingImage',
];

describe('the template of a real account', () => {
  let template: Template;
  let resources: Record<string, TemplateResource>;
  const idsOf = (type: string) => Object.keys(resources).filter((id) => resources[id]?.Type === type);
  /** Without what the function of the quota check itself needs: it goes with the stack, and no job uses it. */
  const keptIdsOf = (type: string) => idsOf(type).filter((id) => !/^(OperationsKey|FailedInvocations)/.test(id));
  const idOf = (type: string, part = '') => idsOf(type).find((id) => id.includes(part)) ?? '';

  beforeAll(() => {
    template = Template.fromStack(stackOf());
    resources = resourcesOf(template);
  }, SYNTH_MS);

  test.each(STATEFUL)('every %s waits for the quota check', (type) => {
    const gate = idOf('Custom::SlipwayQuotaPreflight');
    // The functions of the check itself need the key of the operations.
    const waiting = keptIdsOf(type);
    expect(waiting.length).toBeGreaterThan(0);
    for (const id of waiting) expect([id, resources[id]?.DependsOn]).toEqual([id, expect.arrayContaining([gate])]);
  });

  /** Lambda asks whether the role may send when it makes the function. */
  test('every function has a dead-letter queue, and is made after the policy that lets its role send to it', () => {
    const policies = idsOf('AWS::IAM::Policy');
    const wrong = idsOf('AWS::Lambda::Function').filter((id) => {
      const { Properties, DependsOn = [] } = resources[id] as TemplateResource;
      const target = JSON.stringify(Properties.DeadLetterConfig ?? '');
      const role = (Properties.Role as { 'Fn::GetAtt': [string] })['Fn::GetAtt'][0];
      const own = policies.filter((policy) =>
        JSON.stringify(resources[policy]?.Properties.Roles).includes(`"${role}"`),
      );
      const inline = JSON.stringify(resources[role]?.Properties.Policies ?? '');
      const after = [
        ...own.filter((policy) => DependsOn.includes(policy)).map((policy) => JSON.stringify(resources[policy])),
        inline,
      ];
      return !/Queue|DeadLetters/.test(target) || !after.some((text) => text.includes('sqs:SendMessage'));
    });
    expect(wrong).toEqual([]);
  });

  test('the quota check waits for nothing but its own function, and what a rollback needs', () => {
    const gate = resources[idOf('Custom::SlipwayQuotaPreflight')];
    expect(gate?.DependsOn?.every((id) => /^(Preflight|Unprotect)/.test(id))).toBe(true);
  });

  test('the check knows what is required, and how much of it', () => {
    const needs = JSON.parse(String(resources[idOf('Custom::SlipwayQuotaPreflight')]?.Properties.needs));
    expect(needs.map((n: { code: string; needed: number }) => [n.code, n.needed])).toEqual([
      ['L-09B4A649', 64],
      ['L-00C91CB5', 64],
      ['L-622CFD70', 16],
    ]);
  });

  test.each([
    'AWS::S3::Bucket',
    'AWS::KMS::Key',
    'AWS::DynamoDB::Table',
    'AWS::FSx::FileSystem',
    'AWS::ECR::Repository',
  ])('%s outlives updates and deletions, and not a creation that was rolled back', (type) => {
    for (const id of keptIdsOf(type))
      expect(resources[id]).toMatchObject({ DeletionPolicy: 'RetainExceptOnCreate', UpdateReplacePolicy: 'Retain' });
  });

  test('the guard of the deletion is asked before anything goes', () => {
    const before = everythingBefore(resources, idOf('Custom::SlipwayGuard', 'Delete'));
    const stateful = STATEFUL.flatMap(idsOf).concat(idsOf('AWS::Lambda::Alias'), idsOf('AWS::Events::Rule'));
    expect(stateful.filter((id) => !before.has(id))).toEqual([]);
  });

  test.each(['AWS::EC2::Subnet', 'AWS::EC2::SecurityGroup', 'AWS::KMS::Key'])(
    'the guard of replacements is asked before a %s is replaced',
    (type) => {
      const guard = idOf('Custom::SlipwayGuard', 'Replace');
      for (const id of keptIdsOf(type)) expect(resources[id]?.DependsOn).toEqual(expect.arrayContaining([guard]));
    },
  );

  test('the guard of the deletion ends every update that the guard of replacements began: they have the same properties', () => {
    const [replacing, deleting] = ['Replace', 'Delete'].map((name) => resources[idOf('Custom::SlipwayGuard', name)]);
    const { guards, ServiceToken, ...guarded } = replacing?.Properties ?? {};
    expect(guarded).toHaveProperty('fingerprint');
    expect(deleting?.Properties).toMatchObject(guarded);
  });

  test("the guard of replacements is asked before a job's role is replaced", () => {
    const guard = idOf('Custom::SlipwayGuard', 'Replace');
    const roles = idsOf('AWS::IAM::Role').filter((id) => id.startsWith('Roles'));
    expect(roles).toHaveLength(4);
    for (const id of roles) expect(resources[id]?.DependsOn).toEqual(expect.arrayContaining([guard]));
  });

  test('each team has its descriptor with names and no secret', () => {
    template.hasResourceProperties('AWS::SSM::Parameter', { Name: '/slipway/environments/research/nlp' });
    template.hasResourceProperties('AWS::SSM::Parameter', { Name: '/slipway/environments/research/speech' });
  });

  test('the descriptor says what the image holds', () => {
    expect(JSON.stringify(resources[idOf('AWS::SSM::Parameter', 'Descriptornlp')])).toContain('2.13.0');
  });

  test('the descriptor of a team names the training plans that another team has alone', () => {
    const given = (team: string) => JSON.stringify(resources[idOf('AWS::SSM::Parameter', `Descriptor${team}`)]);
    expect(given('speech')).toContain(plan('of-nlp'));
    expect(given('speech')).not.toContain(plan('of-both'));
    expect(given('nlp')).not.toContain(':training-plan/');
  });

  test.each(NOT_IN_SANDBOX)('%s is there', (type) => {
    expect(idsOf(type).length).toBeGreaterThan(0);
  });

  test('no custom resource can hang for long: each says how long it may take', () => {
    const custom = Object.entries(resources).filter(([, r]) => r.Type.startsWith('Custom::Slipway'));
    for (const [id, r] of custom) expect([id, Number(r.Properties.ServiceTimeout)]).toEqual([id, expect.any(Number)]);
    expect(custom).toHaveLength(8);
  });

  test('jobs carry the tag that the budget counts', () => {
    template.hasResourceProperties('AWS::Budgets::Budget', {
      Budget: { CostFilters: { TagKeyValue: ['user:slipway:environment$research'], Region: ['us-west-2'] } },
    });
  });

  test('only teams with principals get a role to take on; the personas get theirs', () => {
    const names = idsOf('AWS::IAM::Role').flatMap((id) => (resources[id]?.Properties.RoleName as string) ?? []);
    expect(
      names.filter((n) => n.startsWith('slipway-')).map((n) => n.replace('slipway-research-us-west-2-', '')),
    ).toEqual(
      expect.arrayContaining([
        'nlp-researcher',
        'platform-admin',
        'auditor',
        'ci',
        'nlp-execution',
        'speech-processing',
      ]),
    );
    expect(names).not.toContain('slipway-research-us-west-2-speech-researcher');
  });

  test('a role of a permission set may take on the role whatever its suffix, and nobody else of its account', () => {
    const isAuditor = (one: string) => resources[one]?.Properties.RoleName === 'slipway-research-us-west-2-auditor';
    const id = idsOf('AWS::IAM::Role').find(isAuditor);
    expect(resources[id ?? '']?.Properties.AssumeRolePolicyDocument).toMatchObject({
      Statement: [
        {
          Principal: { AWS: 'arn:aws:iam::444455556666:root' },
          Condition: { ArnLike: { 'aws:PrincipalArn': AUDITORS } },
        },
        { Principal: { AWS: 'arn:aws:iam::111122223333:role/auditor' } },
      ],
    });
  });
});

describe('the template for the embedded AWS', () => {
  const sandbox = () => resourcesOf(Template.fromStack(stackOf({}, { sandbox: '1' })));

  test('holds none of the types that it does not know, and everything else', () => {
    const types = new Set(Object.values(sandbox()).map((r) => r.Type));
    for (const type of NOT_IN_SANDBOX) expect([type, types.has(type)]).toEqual([type, false]);
    for (const type of STATEFUL.filter((t) => !NOT_IN_SANDBOX.includes(t)))
      expect([type, types.has(type)]).toEqual([type, true]);
    expect(types.has('Custom::SlipwayQuotaPreflight')).toBe(true);
  });
});

describe('choices of the environment file', () => {
  test('retain: false lets everything go with the stack', () => {
    const template = Template.fromStack(stackOf({ storage: { retain: false } }));
    template.allResources('AWS::S3::Bucket', { DeletionPolicy: 'Delete' });
    template.allResources('AWS::DynamoDB::Table', { DeletionPolicy: 'Delete' });
  });

  test('adopt: true makes no bucket, no table and no key of the data, and finds the key by its parameter', () => {
    const template = Template.fromStack(stackOf({ storage: { adopt: true } }));
    template.resourceCountIs('AWS::S3::Bucket', 0);
    template.resourceCountIs('AWS::DynamoDB::Table', 0);
    const keys = Object.keys(template.findResources('AWS::KMS::Key'));
    expect(keys).toEqual([expect.stringMatching(/^OperationsKey/)]);
    template.hasParameter('*', { Default: '/slipway/storage/slipway-research/key' });
  });

  test('network.mode: none gives jobs no VPC and their roles no right to make interfaces', () => {
    const template = Template.fromStack(stackOf({ network: { mode: 'none' }, storage: {} }));
    template.resourceCountIs('AWS::EC2::VPC', 0);
    expect(JSON.stringify(template.toJSON())).not.toContain('ec2:CreateNetworkInterface');
  });

  test('a named image is neither built nor kept in a repository', () => {
    const uri = '111122223333.dkr.ecr.us-west-2.amazonaws.com/own:1';
    const template = Template.fromStack(stackOf({ image: { uri } }));
    template.resourceCountIs('AWS::ECR::Repository', 0);
    template.resourceCountIs('AWS::CodeBuild::Project', 0);
    template.hasResourceProperties('AWS::SSM::Parameter', {
      Name: '/slipway/environments/research/nlp',
      Value: { 'Fn::Join': ['', Match.arrayWith([Match.stringLikeRegexp(uri)])] },
    });
  });
});
