// What AWS rejects in a template that a linter accepts: resources that are made too early, and names of another partition.
import { Template } from 'aws-cdk-lib/assertions';
import { Default } from 'aws-cdk-lib/region-info';
import { describe, expect, test, vi } from 'vitest';
import { EnvironmentStack } from '../../lib/cdk';
import { REGIONS } from '../../lib/core/catalog/regions';
import { resolveEnvironments } from '../../lib/core/config/environment-file';
import { loadEnvironment } from '../../lib/core/config/load';
import { everythingBefore, resourcesOf, SYNTH_MS, type TemplateResource, testApp } from '../cdk/support/app';
import { CONTEXTS, templateOf } from './support/family';

vi.setConfig({ testTimeout: SYNTH_MS });

type Resources = Record<string, TemplateResource>;

/** Types that test the rules of their security groups when they are made, or connect through them. */
const NETWORK_USERS = ['AWS::FSx::FileSystem', 'AWS::EC2::VPCEndpoint', 'AWS::Lambda::Function'];
const RULES = ['AWS::EC2::SecurityGroupIngress', 'AWS::EC2::SecurityGroupEgress'];

/** Network users that CloudFormation may make before a rule of one of their security groups. */
function tooEarly(resources: Resources): string[] {
  const groupsOf = (value: unknown) =>
    [...JSON.stringify(value ?? '').matchAll(/"Fn::GetAtt":\["(\w+)","GroupId"\]/g)].map(([, id]) => id ?? '');
  const users = Object.entries(resources).filter(([, { Type }]) => NETWORK_USERS.includes(Type));
  return users.flatMap(([id, { Properties }]) => {
    const groups = groupsOf(Properties);
    const before = everythingBefore(resources, id);
    const rules = Object.entries(resources).filter(
      ([, rule]) =>
        RULES.includes(rule.Type) && groupsOf(rule.Properties.GroupId).some((group) => groups.includes(group)),
    );
    return rules.flatMap(([rule]) => (before.has(rule) ? [] : [`${id} before ${rule}`]));
  });
}

test('whatever needs a security group waits for its rules', () => {
  const found = CONTEXTS.map((file) => templateOf(file)?.Resources ?? {});
  expect(found.some((resources) => Object.values(resources).some(({ Type }) => Type === 'AWS::FSx::FileSystem'))).toBe(
    true,
  );
  expect(found.flatMap(tooEarly)).toEqual([]);
});

/** The resources of an environment in one region, for an account in which these zones are looked up. */
function resourcesIn(region: string, zones: readonly string[], more: object = {}): Resources {
  const image = { uri: `111122223333.dkr.ecr.${region}.${REGIONS[region]?.domain}/own:1` };
  const file = {
    name: 'research',
    regions: { [region]: {} },
    image,
    notifications: { emails: ['a@example.com'] },
    ...more,
  };
  const { value } = loadEnvironment(JSON.stringify(file));
  const [spec] = value ? resolveEnvironments(value) : [];
  if (!spec) throw new Error('no environment');
  const account = '111122223333';
  const app = testApp({ [`availability-zones:account=${account}:region=${region}`]: zones });
  const stack = new EnvironmentStack(app, `Slipway-research-${region}`, { spec, env: { account, region } });
  return resourcesOf(Template.fromStack(stack));
}

test('Local Zones and Wavelength Zones that an account has opted in to have no subnets', () => {
  const all = ['us-west-2a', 'us-west-2b', 'us-west-2-lax-1a', 'us-west-2-lax-1b', 'us-west-2-wl1-den-wlz-1'];
  const subnets = Object.values(resourcesIn('us-west-2', all)).filter(({ Type }) => Type === 'AWS::EC2::Subnet');
  expect(subnets.map(({ Properties }) => Properties.AvailabilityZone)).toEqual(['us-west-2a', 'us-west-2b']);
  expect(resourcesIn('us-west-2', all)).toEqual(resourcesIn('us-west-2', all.slice(0, 2)));
});

describe('partitions', () => {
  const regions = Object.entries(REGIONS).filter(
    ([, { partition }], i, all) => all.findIndex(([, other]) => other.partition === partition) === i,
  );

  test.each(regions)('every service principal in %s is the one of its partition', (region, { domain }) => {
    const found: string[] = [];
    const visit = (value: unknown): void => {
      if (typeof value !== 'object' || value === null) return;
      for (const [key, inner] of Object.entries(value)) {
        if (key === 'Principal' && (inner as { Service?: unknown } | null)?.Service) {
          const services = ([] as unknown[]).concat((inner as { Service: unknown }).Service);
          found.push(...services.map((service) => textOf(service, domain)));
        }
        visit(inner);
      }
    };
    visit(
      resourcesIn(
        region,
        ['a', 'b'].map((zone) => region + zone),
      ),
    );
    expect(found.some((service) => service.startsWith('logs.'))).toBe(true);
    const expected = found.map((service) => {
      const name = service.split('.')[0] ?? '';
      return name === 'logging' || name === 'states' ? service : Default.servicePrincipal(name, region, domain);
    });
    expect(found).toEqual(expected);
  });
});

const textOf = (value: unknown, domain: string): string => {
  if (typeof value === 'string') return value;
  const [, parts] = (value as { 'Fn::Join': [string, unknown[]] })['Fn::Join'];
  return parts.map((part) => (typeof part === 'string' ? part : domain)).join('');
};
