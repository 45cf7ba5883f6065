import { Match, Template } from 'aws-cdk-lib/assertions';
import { expect, test, vi } from 'vitest';
import { TrainingNetwork, type TrainingNetworkProps } from '../../../lib/cdk';
import { resourcesOf, SYNTH_MS, testStack } from '../support/app';

vi.setConfig({ testTimeout: SYNTH_MS });

function templateOf(props: Partial<TrainingNetworkProps> = {}, context: Record<string, unknown> = {}): Template {
  const stack = testStack(context);
  new TrainingNetwork(stack, 'Network', { prefix: 'slipway-research', ...props });
  return Template.fromStack(stack);
}

const of = (template: Template, type: string) => Object.values(resourcesOf(template)).filter((r) => r.Type === type);

test('the group of jobs has rules for itself both ways, which EFA needs', () => {
  const template = templateOf();
  const [ingress] = of(template, 'AWS::EC2::SecurityGroupIngress');
  const [egress] = of(template, 'AWS::EC2::SecurityGroupEgress');
  const group = ingress?.Properties.GroupId;
  expect(ingress?.Properties).toMatchObject({ IpProtocol: '-1', SourceSecurityGroupId: group });
  expect(egress?.Properties).toMatchObject({ IpProtocol: '-1', DestinationSecurityGroupId: group, GroupId: group });
});

test('nothing comes in from any address, and only HTTPS goes out', () => {
  for (const group of of(templateOf(), 'AWS::EC2::SecurityGroup')) {
    const { SecurityGroupIngress: ingress = [], SecurityGroupEgress: egress = [] } = group.Properties as {
      SecurityGroupIngress?: { CidrIp: string }[];
      SecurityGroupEgress?: { FromPort?: number; CidrIp: string }[];
    };
    expect(ingress.map((rule) => rule.CidrIp)).not.toContain('0.0.0.0/0');
    for (const rule of egress) expect([443, 252]).toContain(rule.FromPort);
  }
});

test('vpc-locked has no way to the internet, and no interface endpoint that nobody asked for', () => {
  const template = templateOf();
  template.resourceCountIs('AWS::EC2::InternetGateway', 0);
  template.resourceCountIs('AWS::EC2::NatGateway', 0);
  expect(endpointsOf(template)).toEqual(['s3']);
});

test.each([
  [{ endpoints: ['sts', 'monitoring'] }, ['monitoring', 's3', 'sts']],
  [{ endpoints: ['ecr', 'logs'] }, ['ecr.api', 'ecr.dkr', 'logs', 's3']],
  [{ usesCodeArtifact: true }, ['codeartifact.api', 'codeartifact.repositories', 's3']],
  [{ allowsRemoteDebug: true }, ['s3', 'ssmmessages']],
])('%j brings the endpoints it needs, in every subnet', (props, services) => {
  const template = templateOf(props);
  expect(endpointsOf(template)).toEqual(services);
  const subnets = of(template, 'AWS::EC2::Subnet').length;
  for (const { Properties } of of(template, 'AWS::EC2::VPCEndpoint'))
    if (Properties.VpcEndpointType === 'Interface') expect(Properties.SubnetIds).toHaveLength(subnets);
});

/** Names of the services that a template has endpoints for. */
function endpointsOf(template: Template): string[] {
  const names = of(template, 'AWS::EC2::VPCEndpoint').map((e) => JSON.stringify(e.Properties.ServiceName));
  return names
    .map((name) => /us-west-2\.([a-z0-9.]+)"|"\.([a-z0-9.]+)"/.exec(name)?.slice(1).find(Boolean) ?? name)
    .sort();
}

test('the S3 endpoint lets through buckets of this account, named ones and image layers', () => {
  const template = templateOf({ foreignBucketArns: ['arn:aws:s3:::lake'] });
  template.hasResourceProperties('AWS::EC2::VPCEndpoint', {
    VpcEndpointType: 'Gateway',
    PolicyDocument: {
      Statement: [
        Match.objectLike({ Condition: { StringEquals: { 'aws:ResourceAccount': '111122223333' } } }),
        Match.objectLike({ Resource: 'arn:aws:s3:::prod-us-west-2-starport-layer-bucket/*' }),
        Match.objectLike({ Resource: ['arn:aws:s3:::lake', 'arn:aws:s3:::lake/*'] }),
      ],
    },
  });
});

test('subnets lie in the zones that are named by id', () => {
  const subnets = of(templateOf({ availabilityZoneIds: ['usw2-az2', 'usw2-az4'] }), 'AWS::EC2::Subnet');
  expect(subnets.map((s) => [s.Properties.AvailabilityZoneId, s.Properties.AvailabilityZone])).toEqual([
    ['usw2-az2', undefined],
    ['usw2-az4', undefined],
  ]);
});

test('vpc-nat pins private and public subnets of a zone to the same zone', () => {
  const template = templateOf({ mode: 'vpc-nat', availabilityZoneIds: ['usw2-az2', 'usw2-az4'] });
  template.resourceCountIs('AWS::EC2::NatGateway', 1);
  const zones = of(template, 'AWS::EC2::Subnet').map((s) => s.Properties.AvailabilityZoneId);
  expect([...zones].sort()).toEqual(['usw2-az2', 'usw2-az2', 'usw2-az4', 'usw2-az4']);
});

test('all zones of the Region are used when none is named', () => {
  expect(of(templateOf(), 'AWS::EC2::Subnet').length).toBe(3);
});
