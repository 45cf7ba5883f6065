// Code of a job reaches every port of the hosts in its security group. The hosts of two teams must share none.
import { Template } from 'aws-cdk-lib/assertions';
import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { EnvironmentStack } from '../../lib/cdk';
import type { Descriptor } from '../../lib/core/config/descriptor';
import { ENV, resourcesOf, SYNTH_MS, specOf, type TemplateResource, testApp } from '../cdk/support/app';
import { draws } from '../support/draws';
import { evaluate, type Statement } from '../templates/support/policy';
import { resolveValue } from '../templates/support/values';

vi.setConfig({ testTimeout: SYNTH_MS });

interface Made {
  /** References are replaced: that to a security group is `<id>.GroupId`. */
  resources: TemplateResource[];
  descriptors: Record<string, Descriptor>;
}

function environment(more: object): Made {
  const zones = { 'availability-zones:account=111122223333:region=us-west-2': ['us-west-2a', 'us-west-2b'] };
  const stack = new EnvironmentStack(testApp(zones), 'Slipway', { spec: specOf(more), env: ENV });
  const template = resourcesOf(Template.fromStack(stack));
  const resources = Object.entries(template).map(([id, { Type, Properties = {} }]) => ({
    Type,
    Properties: { ...(resolveValue(template, Properties) as object), id } as Record<string, unknown>,
  }));
  const descriptors = of(resources, 'AWS::SSM::Parameter')
    .filter(({ Name }) => /^\/slipway\/environments\/research\/\w+$/.test(String(Name)))
    .map(({ Value }) => JSON.parse(String(Value)) as Descriptor);
  return { resources, descriptors: Object.fromEntries(descriptors.map((one) => [one.team, one])) };
}

const of = (resources: readonly TemplateResource[], type: string) =>
  resources.filter(({ Type }) => Type === type).map(({ Properties }) => Properties);

/** Sources from which a group lets traffic in: groups, and blocks of addresses. */
function sourcesOf({ resources }: Made, group: string): unknown[] {
  const inline = of(resources, 'AWS::EC2::SecurityGroup').find(({ id }) => `${id}.GroupId` === group);
  const separate = of(resources, 'AWS::EC2::SecurityGroupIngress').filter(({ GroupId }) => GroupId === group);
  const rules = [...((inline?.SecurityGroupIngress ?? []) as Record<string, unknown>[]), ...separate];
  return rules.map(({ SourceSecurityGroupId, CidrIp }) => SourceSecurityGroupId ?? CidrIp);
}

const groupsOf = ({ descriptors }: Made) =>
  Object.values(descriptors).flatMap(({ securityGroupIds }) => securityGroupIds);

const FSX = {
  storage: { fsxLustre: { sizeGiB: 1200, zoneId: 'usw2-az2' } },
  network: { availabilityZoneIds: ['usw2-az2'] },
};
const teams = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`team${i}`, {}]));

describe('in a network that the stack creates', () => {
  test('no host of a team can reach one of another, whatever the environment', () => {
    const environments = fc.record({
      count: fc.integer({ min: 2, max: 16 }),
      more: fc.constantFrom<object>({}, FSX, { network: { mode: 'vpc-nat' } }, { storage: { retain: false } }),
    });
    fc.assert(
      fc.property(environments, ({ count, more }) => {
        const made = environment({ ...more, teams: teams(count) });
        const [storage] = of(made.resources, 'AWS::FSx::FileSystem').flatMap((one) => one.SecurityGroupIds);
        const groups = groupsOf(made);
        expect([groups.length, new Set([storage, ...groups]).size]).toEqual([count, count + 1]);
        for (const group of groups) {
          const others = sourcesOf(made, group).filter((source) => source !== group);
          expect(
            others.filter((source) => groups.includes(String(source)) || !/GroupId$/.test(String(source))),
          ).toEqual([]);
        }
      }),
      { numRuns: draws(4), verbose: 1 },
    );
  });

  test('every host reaches the file system of the environment, and is reached by it', () => {
    const made = environment({ ...FSX, teams: teams(3) });
    const [storage = ''] = of(made.resources, 'AWS::FSx::FileSystem').flatMap(
      (one) => one.SecurityGroupIds as string[],
    );
    expect(sourcesOf(made, storage)).toEqual(expect.arrayContaining(groupsOf(made)));
    for (const group of groupsOf(made)) expect(sourcesOf(made, group)).toContain(storage);
  });

  test('the role of a team puts interfaces into no group of another', () => {
    const made = environment({ teams: teams(2) });
    const groupsFor = (team: string) => {
      const policies = of(made.resources, 'AWS::IAM::Policy').filter(({ id }) =>
        String(id).startsWith(`Roles${team}execution`),
      );
      const statements = policies.flatMap((one) => (one.PolicyDocument as { Statement: Statement[] }).Statement);
      return groupsOf(made).filter((group) => {
        const resource = `arn:aws:ec2:us-west-2:111122223333:security-group/${group}`;
        return evaluate(statements, { action: 'ec2:CreateNetworkInterface', resource }) === 'Allow';
      });
    };
    const { team0, team1 } = made.descriptors;
    expect([groupsFor('team0'), groupsFor('team1')]).toEqual([team0?.securityGroupIds, team1?.securityGroupIds]);
  });

  test('more than sixteen teams share one group, of which a rule warns', () => {
    expect(new Set(groupsOf(environment({ teams: teams(17) }))).size).toBe(1);
  });
});
