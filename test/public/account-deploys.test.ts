// Further public reports about deployments, tried after the first ones were fixed: test/public/account.md has the sources.
import { DescribeAvailabilityZonesCommand, DescribeVpcEndpointServicesCommand, EC2Client } from '@aws-sdk/client-ec2';
import { Template } from 'aws-cdk-lib/assertions';
import { describe, expect, test, vi } from 'vitest';
import { EnvironmentStack } from '../../lib/cdk';
import { endpointNames, endpointZoneCheck } from '../../lib/cli/environment/checks/zone-checks';
import { REGIONS } from '../../lib/core/catalog/regions';
import { type EnvironmentSpec, resolveEnvironments } from '../../lib/core/config/environment-file';
import { loadEnvironment } from '../../lib/core/config/load';
import { resourcesOf, SYNTH_MS, type TemplateResource, testApp } from '../cdk/support/app';
import { CONTEXTS, templateOf } from '../laws/support/family';
import { mockClient } from '../support/mocked-clients';

vi.setConfig({ testTimeout: SYNTH_MS });

type Resources = Record<string, TemplateResource>;
const ACCOUNT = '111122223333';
const templates = (): Resources[] => CONTEXTS.map((file) => templateOf(file)?.Resources ?? {});
const of = (resources: Resources, type: string) => Object.entries(resources).filter(([, { Type }]) => Type === type);

function specIn(region: string, file: object): EnvironmentSpec {
  const image = { uri: `${ACCOUNT}.dkr.ecr.${region}.${REGIONS[region]?.domain}/own:1` };
  const { value, issues } = loadEnvironment(
    JSON.stringify({ name: 'lab', account: ACCOUNT, regions: { [region]: {} }, image, ...file }),
  );
  const [spec] = value ? resolveEnvironments(value) : [];
  if (!spec) throw new Error(JSON.stringify(issues));
  return spec;
}

/** Names of the interface endpoint services of the template of an environment. */
function endpointServices(spec: EnvironmentSpec): string[] {
  const { region } = spec;
  const zones = { [`availability-zones:account=${ACCOUNT}:region=${region}`]: [`${region}a`, `${region}b`] };
  const stack = new EnvironmentStack(testApp(zones), `Slipway-lab-${region}`, {
    spec,
    env: { account: ACCOUNT, region },
  });
  const endpoints = of(resourcesOf(Template.fromStack(stack)), 'AWS::EC2::VPCEndpoint');
  const interfaces = endpoints.filter(([, { Properties }]) => Properties.VpcEndpointType === 'Interface');
  return interfaces.map(([, { Properties }]) => String(Properties.ServiceName));
}

describe('endpoints', () => {
  const ALL = ['ecr', 'logs', 'monitoring', 'sts', 'kms', 'secretsmanager', 'ssm', 'sagemaker'];
  const partitions = Object.entries(REGIONS).filter(
    ([, { partition }], i, all) => all.findIndex(([, other]) => other.partition === partition) === i,
  );

  test.each(partitions.map(([region]) => region))(
    'preflight finds every service of the template in %s, whatever its prefix',
    async (region) => {
      const spec = specIn(region, {
        network: { endpoints: ALL, packages: 'codeartifact', codeArtifact: { domain: 'ml', repository: 'pypi' } },
        guardrails: { allowRemoteDebug: true },
      });
      const services = endpointServices(spec);
      expect(services).toHaveLength(endpointNames(spec).length);
      const ec2 = mockClient(EC2Client);
      ec2.on(DescribeAvailabilityZonesCommand).resolves({
        AvailabilityZones: [{ ZoneName: `${region}a`, ZoneId: 'az1' }],
      });
      const details = services.map((ServiceName) => ({ ServiceName, AvailabilityZones: [`${region}a`] }));
      ec2.on(DescribeVpcEndpointServicesCommand).resolves({ ServiceDetails: details });
      expect((await endpointZoneCheck(spec))?.issues).toEqual([]);
      ec2.on(DescribeVpcEndpointServicesCommand).resolves({ ServiceDetails: details.slice(1) });
      expect((await endpointZoneCheck(spec))?.issues).toHaveLength(1);
    },
  );

  test('no two in one network are for the same service, and an existing network gets none', () => {
    for (const resources of templates()) {
      const names = of(resources, 'AWS::EC2::VPCEndpoint').map(([, { Properties }]) =>
        JSON.stringify(Properties.ServiceName),
      );
      expect(new Set(names).size).toBe(names.length);
    }
    const existing = { vpcId: 'vpc-0a1b2c3d', subnetIds: ['subnet-0a1b2c3d'], securityGroupIds: ['sg-0a1b2c3d'] };
    expect(endpointServices(specIn('us-west-2', { network: { mode: 'existing', existing } }))).toEqual([]);
  });

  test('S3 has a gateway endpoint, and is refused as an interface endpoint, whose private name needs a gateway', () => {
    const file = { name: 'lab', regions: { 'us-west-2': {} }, network: { endpoints: ['s3'] } };
    const { value, issues } = loadEnvironment(JSON.stringify(file));
    expect([value, issues[0]?.message]).toEqual([
      undefined,
      expect.stringMatching(/^network\.endpoints\[0\]: must be /),
    ]);
  });
});

test('every key can be administered by the account, so that KMS accepts its policy', () => {
  for (const resources of templates())
    for (const [id, { Properties }] of of(resources, 'AWS::KMS::Key')) {
      const statements = (
        Properties.KeyPolicy as { Statement: { Effect: string; Action: unknown; Principal: unknown }[] }
      ).Statement;
      const isOpen = statements.some(
        ({ Effect, Action, Principal }) =>
          Effect === 'Allow' && Action === 'kms:*' && JSON.stringify(Principal).includes(':root'),
      );
      expect([id, isOpen]).toEqual([id, true]);
    }
});

test('no function is in a network, so that no network interface of Lambda keeps a security group', () => {
  for (const resources of templates())
    expect(of(resources, 'AWS::Lambda::Function').filter(([, { Properties }]) => Properties.VpcConfig)).toEqual([]);
});

test('a file system that is retained keeps the groups, subnets and network that it needs', () => {
  const KEPT = ['Retain', 'RetainExceptOnCreate'];
  const found = templates().flatMap((resources) => {
    const refers = (id: string): string[] =>
      [...JSON.stringify(resources[id]?.Properties ?? {}).matchAll(/"(?:Ref|Fn::GetAtt)":\[?"(\w+)"/g)]
        .map(([, to = '']) => to)
        .filter((to) => /^AWS::EC2::(SecurityGroup|Subnet|VPC)$/.test(resources[to]?.Type ?? ''));
    return of(resources, 'AWS::FSx::FileSystem')
      .filter(([, { DeletionPolicy }]) => KEPT.includes(String(DeletionPolicy)))
      .map(([id]) => [id, ...refers(id), ...refers(id).flatMap(refers)].map((one) => resources[one]?.DeletionPolicy));
  });
  expect(found.length).toBeGreaterThan(0);
  for (const policies of found) for (const policy of policies) expect(KEPT).toContain(policy);
});
