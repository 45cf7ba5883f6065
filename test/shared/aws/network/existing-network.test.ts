import {
  DescribeDhcpOptionsCommand,
  DescribeRouteTablesCommand,
  DescribeSecurityGroupsCommand,
  DescribeSubnetsCommand,
  DescribeVpcEndpointsCommand,
  DescribeVpcsCommand,
  EC2Client,
  type Route,
} from '@aws-sdk/client-ec2';
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
      { GroupId: GROUP, VpcId: VPC, IpPermissions: [toItself], IpPermissionsEgress: [toItself], ...more },
    ],
  });

async function issues(more = ''): Promise<string[]> {
  const existing = `{ vpcId: ${VPC}, subnetIds: [${SUBNET}], securityGroupIds: [${GROUP}] }`;
  const text = `name: lab\nregions: { us-west-2: {} }\nnetwork: { mode: existing, existing: ${existing} }\n${more}`;
  const [spec] = resolveEnvironments(loadEnvironment(text).value as never);
  const network = spec && existingNetworkOf(spec, ACCOUNT);
  if (!network) throw new Error('no network');
  return (await existingNetworkIssues(new EC2Client({ region: 'us-west-2' }), network)).map(
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
    'error network.existing.subnetIds: must reach S3, got subnet-0a1b2c3d, whose route table rtb-1 has no route out of the VPC; add a gateway endpoint: aws ec2 create-vpc-endpoint --region us-west-2 --vpc-id vpc-0a1b2c3d --service-name com.amazonaws.us-west-2.s3 --route-table-ids rtb-1';

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

  test('fails: an internet gateway, since jobs have no public address', async () => {
    endpoints();
    tables(table([INTERNET]));
    expect((await issues())[0]).toContain(
      'must reach S3 from private addresses, because jobs have no public ones, got subnet-0a1b2c3d, whose route table rtb-1 has only an internet gateway; add',
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
    group({ IpPermissionsEgress: [{ IpProtocol: '-1', IpRanges: [{ CidrIp: '0.0.0.0/0' }] }] });
    expect((await issues(P5))[0]).toMatch(
      /^error network.existing.securityGroupIds: must include a group that allows all traffic from and to itself/,
    );
    expect((await issues())[0]).toMatch(/^warning network.existing.securityGroupIds/);
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
