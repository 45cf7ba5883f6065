import { Match, Template } from 'aws-cdk-lib/assertions';
import { expect, test, vi } from 'vitest';
import { TrainingNetwork, type TrainingNetworkProps } from '../../lib/constructs';
import { resourcesOf, SYNTH_MS, testStack } from './support/app';

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

test('vpc-locked has no way to the internet and the endpoints that a container calls', () => {
  const template = templateOf();
  template.resourceCountIs('AWS::EC2::InternetGateway', 0);
  template.resourceCountIs('AWS::EC2::NatGateway', 0);
  const endpoints = of(template, 'AWS::EC2::VPCEndpoint').map((e) => JSON.stringify(e.Properties.ServiceName));
  for (const service of ['s3', 'ecr.api', 'ecr.dkr', 'logs', 'monitoring', 'sts'])
    expect([service, endpoints.filter((name) => name.includes(`.${service}"`)).length]).toEqual([service, 1]);
  expect(endpoints).toHaveLength(6);
});

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

test('CodeArtifact and remote debug bring their endpoints', () => {
  const template = templateOf({ usesCodeArtifact: true, allowsRemoteDebug: true });
  expect(of(template, 'AWS::EC2::VPCEndpoint')).toHaveLength(9);
});
