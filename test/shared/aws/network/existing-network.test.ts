import {
  DescribeDhcpOptionsCommand,
  DescribeNatGatewaysCommand,
  DescribeRouteTablesCommand,
  DescribeSecurityGroupsCommand,
  DescribeSubnetsCommand,
  DescribeVpcAttributeCommand,
  DescribeVpcEndpointsCommand,
  DescribeVpcsCommand,
  EC2Client,
  type IpPermission,
  type Route,
} from '@aws-sdk/client-ec2';
import fc from 'fast-check';
import { beforeEach, describe, expect, test } from 'vitest';
import { existingNetworkOf } from '../../../../lib/core/config/environment/network';
import { resolveEnvironments } from '../../../../lib/core/config/environment-file';
import { loadEnvironment } from '../../../../lib/core/config/load';
import { existingNetworkIssues } from '../../../../lib/shared/aws/network/existing-network';
import { mockClient } from '../../../support/mocked-clients';

const ec2 = mockClient(EC2Client);
const ACCOUNT = '111122223333';
const VPC = 'vpc-0a1b2c3d';
const SUBNET = 'subnet-0a1b2c3d';
const GROUP = 'sg-0a1b2c3d';
const NAT: Route = { DestinationCidrBlock: '0.0.0.0/0', NatGatewayId: 'nat-1' };
const INTERNET: Route = { DestinationCidrBlock: '0.0.0.0/0', GatewayId: 'igw-1' };
const LOCAL: Route = { DestinationCidrBlock: '10.0.0.0/16', GatewayId: 'local' };
const S3_GATEWAY = {
  ...{ VpcEndpointId: 'vpce-s3', VpcEndpointType: 'Gateway' as const, State: 'Available' as const },
  ServiceName: 'com.amazonaws.us-west-2.s3',
  RouteTableIds: ['rtb-1'],
};
const toItself = { IpProtocol: '-1', UserIdGroupPairs: [{ GroupId: GROUP }] };
const ANYWHERE: IpPermission = { IpProtocol: '-1', IpRanges: [{ CidrIp: '0.0.0.0/0' }] };
const named = (name: string) => Object.assign(new Error(name), { name });

function table(routes: Route[], association: object = { SubnetId: SUBNET }, RouteTableId = 'rtb-1') {
  return { RouteTableId, Associations: [association], Routes: [LOCAL, ...routes] };
}
const tables = (...RouteTables: object[]) => ec2.on(DescribeRouteTablesCommand).resolves({ RouteTables });
const subnet = (more: object = {}) =>
  ec2.on(DescribeSubnetsCommand).resolves({
    Subnets: [{ SubnetId: SUBNET, VpcId: VPC, OwnerId: ACCOUNT, AvailableIpAddressCount: 4000, ...more }],
  });
const endpoints = (...VpcEndpoints: object[]) => ec2.on(DescribeVpcEndpointsCommand).resolves({ VpcEndpoints });
const group = (more: object = {}) =>
  ec2.on(DescribeSecurityGroupsCommand).resolves({
    SecurityGroups: [
      { GroupId: GROUP, VpcId: VPC, IpPermissions: [toItself], IpPermissionsEgress: [toItself, ANYWHERE], ...more },
    ],
  });

async function issues(more = '', buckets: string[] = []): Promise<string[]> {
  const existing = `{ vpcId: ${VPC}, subnetIds: [${SUBNET}], securityGroupIds: [${GROUP}] }`;
  const text = `name: lab\nregions: { us-west-2: {} }\nnetwork: { mode: existing, existing: ${existing} }\n${more}`;
  const [spec] = resolveEnvironments(loadEnvironment(text).value as never);
  const network = spec && existingNetworkOf(spec, ACCOUNT);
  if (!network) throw new Error('no network');
  return (await existingNetworkIssues(new EC2Client({ region: 'us-west-2' }), network, buckets)).map(
    ({ level, message }) => `${level} ${message}`,
  );
}

beforeEach(() => {
  ec2.reset();
  ec2.on(DescribeVpcsCommand).resolves({ Vpcs: [{ VpcId: VPC }] });
  subnet();
  group();
  tables(table([]));
  endpoints(S3_GATEWAY);
  ec2.on(DescribeNatGatewaysCommand).resolves({});
});

describe('a subnet reaches S3', () => {
  test('through an endpoint in its own route table', async () => {
    expect(await issues()).toEqual([]);
  });

  test("through an endpoint in the VPC's main route table, which it has where it has no other", async () => {
    tables(table([], { Main: true }), table([], { SubnetId: 'subnet-other' }, 'rtb-2'));
    expect(await issues()).toEqual([]);
  });

  test('through a NAT gateway, a transit gateway or whatever else a default route names', async () => {
    endpoints();
    for (const way of [NAT, { DestinationCidrBlock: '0.0.0.0/0', TransitGatewayId: 'tgw-1' }]) {
      tables(table([way]));
      expect(await issues()).toEqual([]);
    }
  });

  test('through an interface endpoint with private DNS', async () => {
    tables(table([]));
    endpoints({ ...S3_GATEWAY, VpcEndpointType: 'Interface', PrivateDnsEnabled: true, RouteTableIds: [] });
    expect(await issues()).toEqual([]);
  });

  const REFUSED =
    'error network.existing.subnetIds: must reach S3, got subnet-0a1b2c3d, whose route table has no route out of the VPC; add a gateway endpoint: aws ec2 create-vpc-endpoint --region us-west-2 --vpc-id vpc-0a1b2c3d --service-name com.amazonaws.us-west-2.s3 --route-table-ids rtb-1';

  test('fails: an endpoint that its table does not name, or whose way is gone', async () => {
    endpoints({ ...S3_GATEWAY, RouteTableIds: ['rtb-2'] });
    expect(await issues()).toEqual([REFUSED]);
    endpoints({ ...S3_GATEWAY, State: 'Pending' });
    expect(await issues()).toEqual([REFUSED]);
    endpoints();
    tables(table([{ ...NAT, State: 'blackhole' }]));
    expect(await issues()).toEqual([REFUSED]);
  });

  test('fails: an endpoint of another service, or without private DNS', async () => {
    endpoints({ ...S3_GATEWAY, ServiceName: 'com.amazonaws.us-west-2.dynamodb' });
    expect(await issues()).toEqual([REFUSED]);
    endpoints({ ...S3_GATEWAY, VpcEndpointType: 'Interface', PrivateDnsEnabled: false });
    expect(await issues()).toEqual([REFUSED]);
  });

  test('terraform-aws-modules/terraform-aws-vpc#1012: fails: private DNS for an inbound resolver only', async () => {
    const DnsOptions = { PrivateDnsOnlyForInboundResolverEndpoint: true };
    const shared = { ...S3_GATEWAY, VpcEndpointType: 'Interface', PrivateDnsEnabled: true, RouteTableIds: [] };
    endpoints({ ...S3_GATEWAY, RouteTableIds: ['rtb-2'] }, { ...shared, DnsOptions });
    expect(await issues()).toEqual([REFUSED]);
    endpoints({ ...shared, DnsOptions: { PrivateDnsOnlyForInboundResolverEndpoint: false } });
    expect(await issues()).toEqual([]);
  });

  test('aws/sagemaker-python-sdk#2199: fails: a NAT gateway in the subnet of the jobs', async () => {
    const nat = (SubnetId?: string) =>
      ec2.on(DescribeNatGatewaysCommand).resolves({ NatGateways: [{ NatGatewayId: 'nat-1', SubnetId }] });
    endpoints();
    tables(table([NAT]), table([INTERNET], { SubnetId: 'subnet-public' }, 'rtb-2'));
    nat(SUBNET);
    expect(await issues()).toEqual([
      REFUSED.replace(
        'must reach S3',
        'must reach S3, which a NAT gateway does only from a subnet with another default route',
      ).replace('no route out of the VPC', 'only a NAT gateway in a loop'),
    ]);
    // One in a public subnet, a regional one, and one of a shared VPC.
    for (const subnetId of ['subnet-public', undefined, 'subnet-not-visible']) {
      nat(subnetId);
      expect(await issues()).toEqual([]);
    }
  });

  test('terraform-aws-modules/terraform-aws-vpc#1072: through a private NAT gateway and a transit gateway', async () => {
    endpoints();
    const transit = { DestinationCidrBlock: '0.0.0.0/0', TransitGatewayId: 'tgw-1' };
    tables(table([NAT]), table([transit], { SubnetId: 'subnet-nat' }, 'rtb-2'));
    const gateway = { NatGatewayId: 'nat-1', SubnetId: 'subnet-nat', ConnectivityType: 'private' as const };
    ec2.on(DescribeNatGatewaysCommand).resolves({ NatGateways: [gateway] });
    expect(await issues()).toEqual([]);
  });

  test('jameshy/pgdump-aws-lambda#36: with outbound rules for the prefix list of S3 and the group only', async () => {
    const https: IpPermission = { IpProtocol: 'tcp', FromPort: 443, ToPort: 443 };
    group({ IpPermissionsEgress: [toItself, { ...https, PrefixListIds: [{ PrefixListId: 'pl-1' }] }] });
    expect(await issues()).toEqual([]);
  });

  test('law: a way out counts exactly when it ends outside the VPC', async () => {
    const ways = fc.uniqueArray(fc.constantFrom('nat-1', 'nat-2', 'igw-1', 'tgw-1'), { maxLength: 3 });
    const route = (id: string): Route => ({
      DestinationCidrBlock: '0.0.0.0/0',
      ...(id.startsWith('nat')
        ? { NatGatewayId: id }
        : id.startsWith('igw')
          ? { GatewayId: id }
          : { TransitGatewayId: id }),
    });
    endpoints();
    ec2.on(DescribeNatGatewaysCommand).resolves({
      NatGateways: [
        { NatGatewayId: 'nat-1', SubnetId: 'subnet-1' },
        { NatGatewayId: 'nat-2', SubnetId: 'subnet-2' },
      ],
    });
    await fc.assert(
      fc.asyncProperty(ways, ways, ways, async (own, first, second) => {
        tables(
          table(own.map(route)),
          table(first.map(route), { SubnetId: 'subnet-1' }, 'rtb-2'),
          table(second.map(route), { SubnetId: 'subnet-2' }, 'rtb-3'),
        );
        const leads = { 'nat-1': first.some((id) => id !== 'nat-1'), 'nat-2': second.some((id) => id !== 'nat-2') };
        const leaves = own.some((id) => (id === 'igw-1' ? false : (leads[id as keyof typeof leads] ?? true)));
        expect(await issues()).toHaveLength(leaves ? 0 : 1);
      }),
      { numRuns: 40 },
    );
  });

  test('fails: an internet gateway, since jobs have no public address', async () => {
    endpoints();
    tables(table([INTERNET]));
    expect((await issues())[0]).toContain(
      'must reach S3 from private addresses, because jobs have no public ones, got subnet-0a1b2c3d, whose route table has only an internet gateway; add',
    );
  });

  test('a shared subnet whose routes its owner alone sees is a warning', async () => {
    subnet({ OwnerId: '444455556666' });
    tables();
    endpoints();
    expect(await issues()).toEqual([
      'warning network.existing.subnetIds: must reach S3, got subnet-0a1b2c3d of account 444455556666, whose routes this account cannot see; ask its owner whether its route table has an endpoint for S3',
    ]);
    tables(table([]));
    expect((await issues())[0]).toMatch(/^warning network.existing.subnetIds: must reach S3/);
  });
});

describe('services that options need', () => {
  const MLFLOW =
    'teams: { nlp: { mlflow: ["arn:aws:sagemaker:us-west-2:111122223333:mlflow-tracking-server/shared"] } }\n';

  test('fails: no interface endpoint in a network without another way', async () => {
    const found = await issues(`guardrails: { allowRemoteDebug: true }\n${MLFLOW}`);
    expect(found).toEqual([
      'error network.existing.vpcId: must have an interface endpoint for ssmmessages with private DNS, which guardrails.allowRemoteDebug requires, got vpc-0a1b2c3d, where subnet-0a1b2c3d has no other route to it; create it, or give the subnet a route to a NAT gateway',
      expect.stringContaining(
        'an interface endpoint for experiments with private DNS, which teams.<team>.mlflow requires',
      ),
    ]);
    tables(table([NAT]));
    expect(await issues('guardrails: { allowRemoteDebug: true }\n')).toEqual([]);
  });

  test('are there by the names that AWS gives them', async () => {
    const service = (ServiceName: string) => ({ ...S3_GATEWAY, VpcEndpointType: 'Interface', ServiceName });
    endpoints(
      ...[S3_GATEWAY, service('com.amazonaws.us-west-2.ssmmessages'), service('aws.sagemaker.us-west-2.experiments')],
    );
    expect(await issues(`guardrails: { allowRemoteDebug: true }\n${MLFLOW}`)).toEqual([]);
  });
});

describe('hosts of a job', () => {
  const P5 = 'quotas: { require: [{ instanceType: ml.p5.48xlarge, count: 16 }] }\n';

  test('fails: a group that its members cannot send to, where a required type has EFA; a warning otherwise', async () => {
    group({ IpPermissionsEgress: [ANYWHERE] });
    expect((await issues(P5))[0]).toMatch(
      /^error network.existing.securityGroupIds: must include a group that allows all traffic from and to itself/,
    );
    expect((await issues())[0]).toMatch(/^warning network.existing.securityGroupIds/);
  });

  test('awslabs/awsome-distributed-ai#546: fails: outbound rules for address ranges only', async () => {
    group({ IpPermissionsEgress: [ANYWHERE] });
    expect((await issues(P5))[0]).toMatch(/^error .* allows all traffic from and to itself/);
  });

  test('awslabs/awsome-distributed-ai#259: of several groups, one without the rules of EFA is a warning', async () => {
    const other = { GroupId: 'sg-2', VpcId: VPC, IpPermissionsEgress: [ANYWHERE] };
    const own = { GroupId: GROUP, VpcId: VPC, IpPermissions: [toItself], IpPermissionsEgress: [toItself] };
    ec2.on(DescribeSecurityGroupsCommand).resolves({ SecurityGroups: [own, other] });
    expect(await issues(P5)).toEqual([
      expect.stringMatching(
        /^warning network.existing.securityGroupIds: should only include groups that allow all traffic from and to themselves, .* got sg-2; add both rules: .* --group-id sg-2/,
      ),
    ]);
    expect(await issues()).toEqual([]);
  });

  const port = (more: IpPermission): IpPermission => ({ IpProtocol: 'tcp', FromPort: 443, ToPort: 443, ...more });
  const UNREACHED =
    'error network.existing.securityGroupIds: must include a group that allows HTTPS to S3, got sg-0a1b2c3d; add the rule: aws ec2 authorize-security-group-egress --group-id sg-0a1b2c3d --protocol tcp --port 443 --cidr 0.0.0.0/0, or one for the prefix list of S3';

  test('GuardBench/guardbench-iac#4: fails: HTTPS to the group of other endpoints only', async () => {
    group({ IpPermissionsEgress: [toItself, port({ UserIdGroupPairs: [{ GroupId: 'sg-endpoints' }] })] });
    expect(await issues()).toEqual([UNREACHED]);
    endpoints({ ...S3_GATEWAY, VpcEndpointType: 'Interface', PrivateDnsEnabled: true, RouteTableIds: [] });
    expect(await issues()).toEqual([]);
  });

  test('law: send to S3 exactly when a rule opens HTTPS to its public addresses', async () => {
    const target = fc.constantFrom<[IpPermission, boolean]>(
      [{ PrefixListIds: [{ PrefixListId: 'pl-1' }] }, true],
      [{ IpRanges: [{ CidrIp: '0.0.0.0/0' }] }, true],
      [{ IpRanges: [{ CidrIp: '52.218.128.0/17' }] }, true],
      [{ IpRanges: [{ CidrIp: '10.0.0.0/16' }] }, false],
      [{ IpRanges: [{ CidrIp: '172.31.0.0/16' }] }, false],
      [{ UserIdGroupPairs: [{ GroupId: GROUP }] }, false],
    );
    const ports = fc.constantFrom<[IpPermission, boolean]>(
      [{ IpProtocol: '-1' }, true],
      [{ IpProtocol: 'tcp', FromPort: 0, ToPort: 65535 }, true],
      [port({}), true],
      [{ IpProtocol: 'tcp', FromPort: 80, ToPort: 80 }, false],
      [{ IpProtocol: 'udp', FromPort: 443, ToPort: 443 }, false],
    );
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(target, ports), { maxLength: 4 }), async (rules) => {
        group({ IpPermissionsEgress: [toItself, ...rules.map(([[to], [by]]) => ({ ...to, ...by }))] });
        const isOpen = rules.some(([[, isPublic], [, isHttps]]) => isPublic && isHttps);
        expect(await issues()).toEqual(isOpen ? [] : [UNREACHED]);
      }),
      { numRuns: 60 },
    );
  });

  test('need five addresses each in one subnet with EFA, and two without', async () => {
    subnet({ AvailableIpAddressCount: 80 });
    expect(await issues(P5)).toEqual([]);
    subnet({ AvailableIpAddressCount: 79 });
    expect(await issues(P5)).toEqual([
      'warning network.existing.subnetIds: must have 80 free addresses in one subnet for the largest entry of quotas.require, got 79 in the largest; use a larger subnet, or free addresses before such a run starts',
    ]);
    expect(await issues(P5.replace('p5.48xlarge', 'm5.large'))).toEqual([]);
    expect(await issues(`${P5}guardrails: { maxInstancesPerRun: 8 }\n`)).toEqual([]);
  });
});

test('fails: ids of nothing, and of another VPC, all at once', async () => {
  ec2.on(DescribeVpcsCommand).rejects(named('InvalidVpcID.NotFound'));
  subnet({ VpcId: 'vpc-other' });
  ec2.on(DescribeSecurityGroupsCommand).rejects(named('InvalidGroup.NotFound'));
  expect(await issues()).toEqual([
    'error network.existing.vpcId: must exist in the region, got vpc-0a1b2c3d; correct the ids, or share the resources with the account',
    'error network.existing.subnetIds: must be in vpc-0a1b2c3d, got subnet-0a1b2c3d in vpc-other; use resources of that VPC',
    'error network.existing.securityGroupIds: must exist in the region, got sg-0a1b2c3d; correct the ids, or share the resources with the account',
  ]);
});

test('fails: a call that is not permitted is no finding', async () => {
  ec2.on(DescribeRouteTablesCommand).rejects(named('UnauthorizedOperation'));
  await expect(issues()).rejects.toThrow('UnauthorizedOperation');
});

describe('the names of its DHCP options', () => {
  const options = (...keys: string[]) => {
    ec2.on(DescribeVpcsCommand).resolves({ Vpcs: [{ VpcId: VPC, DhcpOptionsId: 'dopt-1' }] });
    ec2
      .on(DescribeDhcpOptionsCommand)
      .resolves({ DhcpOptions: [{ DhcpConfigurations: keys.map((Key) => ({ Key, Values: [{ Value: 'x' }] })) }] });
  };

  test('are a warning where one is missing', async () => {
    options('domain-name-servers', 'ntp-servers');
    expect(await issues()).toEqual([
      'warning network.existing.vpcId: must have DHCP options with domain-name and domain-name-servers, without which SageMaker starts no job, got dopt-1 without domain-name; associate the VPC with DHCP options that have both',
    ]);
  });

  test('are none where both are there, and for a VPC without options of its own', async () => {
    options('domain-name', 'domain-name-servers');
    expect(await issues()).toEqual([]);
    ec2.on(DescribeVpcsCommand).resolves({ Vpcs: [{ VpcId: VPC, DhcpOptionsId: 'default' }] });
    expect(await issues()).toEqual([]);
  });

  test('aws/containers-roadmap#22: may be answered by other name servers than those of the VPC', async () => {
    ec2.on(DescribeVpcsCommand).resolves({ Vpcs: [{ VpcId: VPC, DhcpOptionsId: 'dopt-1' }] });
    const own = [{ Key: 'domain-name-servers', Values: [{ Value: '10.0.0.53' }] }];
    const DhcpConfigurations = [{ Key: 'domain-name', Values: [{ Value: 'corp.example.org' }] }, ...own];
    ec2.on(DescribeDhcpOptionsCommand).resolves({ DhcpOptions: [{ DhcpConfigurations }] });
    expect(await issues()).toEqual([]);
  });
});

describe('the attributes of its DNS', () => {
  const attributes = (support: boolean, hostnames: boolean, OwnerId = ACCOUNT) => {
    ec2.on(DescribeVpcsCommand).resolves({ Vpcs: [{ VpcId: VPC, OwnerId, DhcpOptionsId: 'dopt-1' }] });
    ec2
      .on(DescribeVpcAttributeCommand, { Attribute: 'enableDnsSupport' })
      .resolves({ EnableDnsSupport: { Value: support } });
    ec2
      .on(DescribeVpcAttributeCommand, { Attribute: 'enableDnsHostnames' })
      .resolves({ EnableDnsHostnames: { Value: hostnames } });
  };
  const servers = (Value: string) => {
    const DhcpConfigurations = [
      { Key: 'domain-name', Values: [{ Value: 'ec2.internal' }] },
      { Key: 'domain-name-servers', Values: [{ Value }] },
    ];
    ec2.on(DescribeDhcpOptionsCommand).resolves({ DhcpOptions: [{ DhcpConfigurations }] });
  };
  const DEBUG = 'guardrails: { allowRemoteDebug: true }\n';

  test('codefresh-io/eks-installer#3: fails: no support, unless other servers answer', async () => {
    servers('AmazonProvidedDNS');
    attributes(false, false);
    expect(await issues()).toEqual([
      'error network.existing.vpcId: must have enableDnsSupport, without which jobs find no names, got vpc-0a1b2c3d without it; run aws ec2 modify-vpc-attribute --vpc-id vpc-0a1b2c3d --enable-dns-support',
    ]);
    servers('10.0.0.53');
    expect(await issues()).toEqual([]);
  });

  test('are a warning without hostnames where an option needs private names, and none for S3 alone', async () => {
    servers('AmazonProvidedDNS');
    attributes(true, false);
    endpoints(S3_GATEWAY, {
      ...S3_GATEWAY,
      VpcEndpointType: 'Interface',
      RouteTableIds: [],
      ServiceName: 'com.amazonaws.us-west-2.ssmmessages',
    });
    expect(await issues(DEBUG)).toEqual([
      'warning network.existing.vpcId: must have enableDnsHostnames, without which jobs find no private names of endpoints, got vpc-0a1b2c3d without it; run aws ec2 modify-vpc-attribute --vpc-id vpc-0a1b2c3d --enable-dns-hostnames',
    ]);
    expect(await issues()).toEqual([]);
  });

  test('are not read of a VPC that another account shares, which alone sees them', async () => {
    servers('AmazonProvidedDNS');
    attributes(false, false, '444455556666');
    expect(await issues()).toEqual([]);
    expect(ec2.commandCalls(DescribeVpcAttributeCommand)).toEqual([]);
  });
});

describe('the policy of an endpoint', () => {
  const OWN = 'arn:aws:s3:::lake';
  const LAYERS = 'arn:aws:s3:::prod-us-west-2-starport-layer-bucket';
  const statement = (more: object = {}) => ({ Effect: 'Allow', Principal: '*', Action: '*', Resource: '*', ...more });
  const policy = (...Statement: object[]) => {
    endpoints({ ...S3_GATEWAY, PolicyDocument: JSON.stringify({ Version: '2008-10-17', Statement }) });
  };
  const SAID = 'warning network.existing.vpcId: should have endpoints whose policies allow';

  test('awsdocs/amazon-ecr-user-guide#8: is a warning where it leaves out a bucket, also beside a NAT gateway', async () => {
    const objects = (bucket: string) => [bucket, `${bucket}/*`];
    policy(statement({ Resource: [...objects(OWN), ...objects(LAYERS)] }));
    tables(table([NAT]));
    const said = `${SAID} s3:GetObject and s3:PutObject for arn:aws:s3:::results, got the policy of vpce-s3, which does not; extend it; what it leaves out is denied`;
    expect(await issues('', [OWN, 'arn:aws:s3:::results'])).toEqual([said]);
    expect(await issues('', [OWN])).toEqual([]);
    // SageMaker pulls images from its own network, and other route tables have endpoints of their own.
    policy(statement({ Resource: objects(OWN) }));
    expect(await issues('', [OWN])).toEqual([]);
    endpoints({ ...S3_GATEWAY, RouteTableIds: ['rtb-other'], PolicyDocument: JSON.stringify({ Statement: [] }) });
    expect(await issues('', [OWN])).toEqual([]);
  });

  test('terraform-aws-modules/terraform-aws-vpc#1197: is a warning where it only denies', async () => {
    const Condition = { StringNotEquals: { 'aws:SourceVpc': VPC } };
    policy(statement({ Effect: 'Deny', Condition }));
    expect(await issues()).toEqual([expect.stringContaining(`${SAID} requests, got the policy of vpce-s3, `)]);
    const debug = {
      VpcEndpointId: 'vpce-ssm',
      VpcEndpointType: 'Interface',
      ServiceName: 'com.amazonaws.us-west-2.ssmmessages',
    };
    endpoints(S3_GATEWAY, { ...debug, PolicyDocument: JSON.stringify({ Statement: statement({ Effect: 'Deny' }) }) });
    expect(await issues('guardrails: { allowRemoteDebug: true }\n')).toEqual([
      expect.stringContaining('requests, got the policy of vpce-ssm, '),
    ]);
  });

  test('margince/margince#5281: is accepted where it allows the credentials of the account', async () => {
    policy(statement({ Condition: { StringEquals: { 'aws:PrincipalAccount': ACCOUNT } } }));
    expect(await issues('', [OWN])).toEqual([]);
  });

  test('law: counts as IAM does, if conditions of permissions hold and those of denials do not', async () => {
    const shape = fc.record({
      Effect: fc.constantFrom('Allow', 'Allow', 'Deny'),
      actions: fc.constantFrom<[string, boolean, boolean]>(
        ['*', true, true],
        ['s3:*', true, true],
        ['s3:Get*', true, false],
        ['s3:PutObject', false, true],
        ['s3:ListBucket', false, false],
      ),
      place: fc.constantFrom<[string, boolean]>(
        ['*', true],
        [`${OWN}/*`, true],
        [OWN, false],
        [`${OWN}-other/*`, false],
      ),
      hasCondition: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(shape, { minLength: 1, maxLength: 4 }), async (shapes) => {
        policy(
          ...shapes.map(({ Effect, actions: [Action], place: [Resource], hasCondition }) =>
            statement({
              Effect,
              Action,
              Resource,
              ...(hasCondition && { Condition: { StringEquals: { 'aws:a': 'b' } } }),
            }),
          ),
        );
        const allows = ([1, 2] as const).every((which) => {
          const hits = shapes.filter(({ actions, place }) => actions[which] && place[1]);
          const isDenied = hits.some(({ Effect, hasCondition }) => Effect === 'Deny' && !hasCondition);
          return hits.some(({ Effect }) => Effect === 'Allow') && !isDenied;
        });
        expect(await issues('', [OWN])).toHaveLength(allows ? 0 : 1);
      }),
      { numRuns: 100 },
    );
  });
});
