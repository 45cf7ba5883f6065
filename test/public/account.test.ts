// Public reports about deployments of CloudFormation and the CDK, with inputs of our own: test/public/account.md has the sources.

import { CodeBuildClient } from '@aws-sdk/client-codebuild';
import { DescribeAvailabilityZonesCommand, DescribeVpcEndpointServicesCommand, EC2Client } from '@aws-sdk/client-ec2';
import { IAMClient } from '@aws-sdk/client-iam';
import { LambdaClient } from '@aws-sdk/client-lambda';
import { ServiceQuotasClient } from '@aws-sdk/client-service-quotas';
import { GetParameterCommand, SSMClient } from '@aws-sdk/client-ssm';
import { STSClient } from '@aws-sdk/client-sts';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { executionStatements } from '../../lib/cdk/access/job-role-policy';
import { deployChecks } from '../../lib/cli/environment/checks/first-deploy';
import { loadEnvironment } from '../../lib/core/config/load';
import { checkEnvironment } from '../../lib/core/rules/environment';
import { measureTemplate, sizeIssues } from '../../lib/shared/environment/template-sizes';
import { SYNTH_MS, specOf, type TemplateResource } from '../cdk/support/app';
import { CONTEXTS, merged, templateOf } from '../laws/support/family';
import { mockClient } from '../support/mocked-clients';

vi.setConfig({ testTimeout: SYNTH_MS });

type Resources = Record<string, TemplateResource>;
const TEAMS = { teams: Object.fromEntries('abcdefghijkl'.split('').map((name) => [name, { kmsKey: 'own' }])) };
/** Small and large environments, with a network, without one, and with a file system. */
const templates = (): Resources[] =>
  [...CONTEXTS, merged(CONTEXTS[0] ?? {}, TEAMS)].map((file) => {
    const template = templateOf(file);
    if (!template) throw new Error(`refused: ${JSON.stringify(file)}`);
    return template.Resources;
  });
const of = (resources: Resources, type: string) => Object.entries(resources).filter(([, { Type }]) => Type === type);

/** Logical ids to which a resource refers or on which it depends. */
function referredBy({ Properties, DependsOn = [] }: TemplateResource, resources: Resources): string[] {
  const text = JSON.stringify(Properties ?? {});
  const named = [...text.matchAll(/"(?:Ref|Fn::GetAtt)":\[?"(\w+)"/g)].map(([, id]) => id ?? '');
  const substituted = [...text.matchAll(/\$\{(\w+)[.}]/g)].map(([, id]) => id ?? '');
  return [...named, ...substituted, ...([] as string[]).concat(DependsOn)].filter((id) => resources[id]);
}

/** The resources of a circle of dependencies; empty without one. */
function circle(resources: Resources): string[] {
  const done = new Set<string>();
  const visit = (id: string, path: string[]): string[] => {
    if (path.includes(id)) return [...path.slice(path.indexOf(id)), id];
    if (done.has(id)) return [];
    const resource = resources[id];
    const found = resource
      ? referredBy(resource, resources)
          .map((next) => visit(next, [...path, id]))
          .find((c) => c.length > 0)
      : [];
    done.add(id);
    return found ?? [];
  };
  return (
    Object.keys(resources)
      .map((id) => visit(id, []))
      .find((found) => found.length > 0) ?? []
  );
}

describe('templates', () => {
  test('have no circle of buckets, keys, roles, policies and functions', () => {
    expect(templates().map(circle)).toEqual(templates().map(() => []));
    const [first = {}] = templates();
    const key = of(first, 'AWS::KMS::Key')
      .map(([id]) => id)
      .find((id) => id.startsWith('StorageKey'));
    const [bucket] = of(first, 'AWS::S3::Bucket').find(([, one]) => JSON.stringify(one).includes(`"${key}"`)) ?? [''];
    const turned = structuredClone(first);
    Object.assign(turned[key ?? ''] ?? {}, { DependsOn: [bucket] });
    expect(key && bucket ? circle(turned).length : 0).toBeGreaterThan(0);
  });

  test('have no policy of a key that names a log group, a queue or a bucket', () => {
    for (const resources of templates())
      for (const [id, { Properties }] of of(resources, 'AWS::KMS::Key'))
        expect([id, referredBy({ Type: '', Properties: { KeyPolicy: Properties.KeyPolicy } }, resources)]).toEqual([
          id,
          [],
        ]);
  });

  test('have no log group and no retained function whose name blocks the next deploy', () => {
    for (const resources of templates()) {
      expect(of(resources, 'AWS::Logs::LogGroup').filter(([, { Properties }]) => Properties?.LogGroupName)).toEqual([]);
      expect(
        of(resources, 'AWS::Lambda::Function').filter(
          ([, { DeletionPolicy = 'Delete' }]) => DeletionPolicy !== 'Delete',
        ),
      ).toEqual([]);
    }
  });

  test('have no role that trusts itself or another role of the stack, and no service without a name', () => {
    for (const resources of templates())
      for (const [id, { Properties }] of of(resources, 'AWS::IAM::Role')) {
        const trust = Properties.AssumeRolePolicyDocument;
        expect([id, referredBy({ Type: '', Properties: { trust } }, resources)]).toEqual([id, []]);
        expect(JSON.stringify(trust)).not.toMatch(/"Service":"amazonaws/);
      }
  });

  test('let Lustre clients and servers use all of its ports', () => {
    const withFsx = templates().filter((resources) => of(resources, 'AWS::FSx::FileSystem').length > 0);
    expect(withFsx.length).toBeGreaterThan(0);
    for (const resources of withFsx)
      for (const type of ['AWS::EC2::SecurityGroupIngress', 'AWS::EC2::SecurityGroupEgress'])
        expect(of(resources, type).map(([, { Properties }]) => Properties.IpProtocol)).toContain('-1');
  });

  test('may list the versions of the buckets that they empty', () => {
    for (const resources of templates()) {
      const [, policy] = of(resources, 'AWS::IAM::Policy').find(([id]) => id.startsWith('StorageEmpty')) ?? [];
      expect(JSON.stringify(policy?.Properties)).toContain('s3:ListBucketVersions');
    }
  });
});

test('a trust policy with more principals than IAM accepts is refused with the option', () => {
  const principals = Array.from({ length: 40 }, (_, i) => ({
    AWS: `arn:aws:iam::111122223333:role/people/researcher-${i}`,
  }));
  const Role = {
    Type: 'AWS::IAM::Role',
    Properties: {
      RoleName: 'slipway-research-us-west-2-nlp-researcher',
      AssumeRolePolicyDocument: {
        Statement: principals.map((Principal) => ({ Effect: 'Allow', Action: 'sts:AssumeRole', Principal })),
      },
    },
  };
  const place = { stack: 'Slipway-research-us-west-2', account: '111122223333', region: 'us-west-2' };
  expect(sizeIssues(measureTemplate({ Resources: { Role } }, place)).map(({ path }) => path)).toEqual([
    'teams.nlp.principals',
  ]);
});

test('more variables of a function than Lambda accepts, with every option of many teams, are refused with the option', () => {
  const channels = Object.fromEntries(
    Array.from({ length: 40 }, (_, i) => [`team${i}`, { 'Fn::GetAtt': ['Topic', 'TopicArn'] }]),
  );
  const Reconcile = { Type: 'AWS::Lambda::Function', Properties: { Environment: { Variables: channels } } };
  const place = { stack: 'S'.repeat(100), account: '111122223333', region: 'us-west-2' };
  const Resources = { Topic: { Type: 'AWS::SNS::Topic', Properties: {} }, Reconcile };
  expect(sizeIssues(measureTemplate({ Resources }, place)).map(({ path }) => path)).toEqual(['teams']);
});

test('a group is no principal, and is refused where it stands', () => {
  const file = {
    name: 'lab',
    regions: { 'us-west-2': {} },
    teams: { nlp: { principals: ['arn:aws:iam::111122223333:group/nlp'] } },
  };
  const { value, issues } = loadEnvironment(JSON.stringify(file));
  expect(value).toBeUndefined();
  expect(issues[0]?.message).toMatch(/^teams\.nlp\.principals\[0\]: must be /);
});

test('a file system that the stack makes in an existing network, whose groups may close its ports, is refused or checked', () => {
  const existing = { vpcId: 'vpc-0a1b2c3d', subnetIds: ['subnet-0a1b2c3d'], securityGroupIds: ['sg-0a1b2c3d'] };
  const file = {
    ...{ name: 'lab', regions: { 'us-west-2': {} }, network: { mode: 'existing', existing } },
    storage: { fsxLustre: { sizeGiB: 1200, zoneId: 'usw2-az2' } },
  };
  const { value } = loadEnvironment(JSON.stringify(file));
  const errors = value ? checkEnvironment(value).filter(({ level }) => level === 'error') : [];
  expect(errors.map(({ message }) => message)).toEqual([expect.stringMatching(/^(storage\.fsxLustre|network)/)]);
});

test('the role of jobs may decrypt with the key of its inputs and outputs', () => {
  const statements = executionStatements({
    ...{ partition: 'aws', account: '111122223333', region: 'us-west-2', environment: 'research', team: 'nlp' },
    ...{
      writableData: ['teams/nlp/'],
      dataBucketArn: 'DATA',
      checkpointBucketArn: 'CHECKPOINTS',
      artifactBucketArn: 'ARTIFACTS',
    },
    ...{ keyArn: 'KEY', subnetIds: [], securityGroupIds: [] },
  });
  const actions = statements.filter(({ resources }) => resources.includes('KEY')).flatMap((one) => one.actions);
  expect(actions).toEqual(expect.arrayContaining(['kms:Decrypt', 'kms:GenerateDataKey', 'kms:CreateGrant']));
});

describe('an endpoint service that the region does not have', () => {
  const ec2 = mockClient(EC2Client);
  const ssm = mockClient(SSMClient);
  const others = [
    mockClient(CodeBuildClient),
    mockClient(IAMClient),
    mockClient(LambdaClient),
    mockClient(ServiceQuotasClient),
    mockClient(STSClient),
  ];
  beforeEach(() => {
    for (const client of [ec2, ssm, ...others]) client.reset();
    ssm.on(GetParameterCommand).resolves({ Parameter: { Value: '30' } });
    ec2.on(DescribeAvailabilityZonesCommand).resolves({ AvailabilityZones: [] });
  });

  test('is refused by preflight with the option', async () => {
    ec2.on(DescribeVpcEndpointServicesCommand).resolves({ ServiceDetails: [] });
    const spec = specOf({ account: '111122223333', network: { endpoints: ['sts'] } });
    const found = (await deployChecks(spec, false)).flatMap(({ issues }) => issues.map(({ message }) => message));
    expect(found).toContainEqual(
      expect.stringMatching(/^network\.endpoints: must name services that us-west-2 has, got sts;/),
    );
  });
});
