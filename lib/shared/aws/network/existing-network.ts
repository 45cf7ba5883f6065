import {
  DescribeDhcpOptionsCommand,
  DescribeRouteTablesCommand,
  DescribeSecurityGroupsCommand,
  DescribeSubnetsCommand,
  DescribeVpcAttributeCommand,
  DescribeVpcEndpointsCommand,
  DescribeVpcsCommand,
  type EC2Client,
  type SecurityGroup,
  type Subnet,
  type Vpc,
} from '@aws-sdk/client-ec2';
import type { ExistingNetwork } from '../../../core/config/environment/network';
import type { Issue } from '../../../core/config/issue';
import { policyIssues, type UsableEndpoint, usableEndpoints } from './endpoints';
import { networkIssue } from './network-issue';
import { natLoops, type Routes, routesOf } from './routes';
import { groupIssues, outboundIssues } from './security-groups';

/**
 * Checks an existing VPC: ids, routes to S3 and to the services that the options need, DNS, and security group rules (errors), and free
 * addresses and policies of endpoints (warnings). Routes and endpoints of shared subnets may not be visible to this account, so their
 * absence is only a warning.
 * https://docs.aws.amazon.com/sagemaker/latest/dg/train-vpc.html and
 * https://docs.aws.amazon.com/vpc/latest/userguide/vpc-share-limitations.html, 2026-11-24.
 * @param buckets ARNs of buckets that jobs read and write, as far as they are known
 * @throws the error of EC2 when the caller lacks a permission
 */
export async function existingNetworkIssues(
  ec2: EC2Client,
  network: ExistingNetwork,
  buckets: readonly string[] = [],
): Promise<Issue[]> {
  const { vpcId, subnetIds, securityGroupIds } = network;
  const [vpc, subnets, groups] = await Promise.all([
    orMissing(ec2.send(new DescribeVpcsCommand({ VpcIds: [vpcId] })).then(({ Vpcs }) => Vpcs)),
    orMissing(ec2.send(new DescribeSubnetsCommand({ SubnetIds: [...subnetIds] })).then(({ Subnets }) => Subnets)),
    orMissing(
      ec2
        .send(new DescribeSecurityGroupsCommand({ GroupIds: [...securityGroupIds] }))
        .then(({ SecurityGroups }) => SecurityGroups),
    ),
  ]);
  const absent = [
    ...(vpc ? [] : [missing('vpcId', vpcId)]),
    ...(subnets ? elsewhere('subnetIds', vpcId, subnets) : [missing('subnetIds', subnetIds.join(', '))]),
    ...(groups
      ? elsewhere('securityGroupIds', vpcId, groups)
      : [missing('securityGroupIds', securityGroupIds.join(', '))]),
  ];
  if (absent.length > 0 || !subnets || !groups) return absent;
  return [
    ...(await nameIssues(ec2, network, vpc?.[0])),
    ...(await reachIssues(ec2, network, { subnets, groups, buckets })),
    ...groupIssues(network, groups),
    ...addressIssues(network, subnets),
  ];
}

/** What the account has, and ARNs of the buckets of jobs. */
interface Found {
  subnets: readonly Subnet[];
  groups: readonly SecurityGroup[];
  buckets: readonly string[];
}

/** Undefined when one of the ids does not exist or is not visible to the account. */
async function orMissing<T>(answer: Promise<T[] | undefined>): Promise<T[] | undefined> {
  try {
    const found = await answer;
    return found?.length ? found : undefined;
  } catch (error) {
    if (/^Invalid\w+\.(NotFound|Malformed)$/.test((error as Error).name)) return undefined;
    throw error;
  }
}

const missing = (option: string, ids: string): Issue =>
  networkIssue('error', option, {
    must: 'must exist in the region',
    got: ids,
    fix: 'correct the ids, or share the resources with the account',
  });

function elsewhere(option: string, vpcId: string, found: readonly (Subnet | SecurityGroup)[]): Issue[] {
  const ids = found
    .filter((one) => one.VpcId !== vpcId)
    .map((one) => `${'SubnetId' in one ? one.SubnetId : (one as SecurityGroup).GroupId} in ${one.VpcId}`);
  if (ids.length === 0) return [];
  return [
    networkIssue('error', option, {
      must: `must be in ${vpcId}`,
      got: ids.join(', '),
      fix: 'use resources of that VPC',
    }),
  ];
}

async function reachIssues(ec2: EC2Client, network: ExistingNetwork, found: Found): Promise<Issue[]> {
  const { vpcId, services, region } = network;
  const Filters = [{ Name: 'vpc-id', Values: [vpcId] }];
  const [{ RouteTables = [] }, { VpcEndpoints = [] }] = await Promise.all([
    ec2.send(new DescribeRouteTablesCommand({ Filters })),
    ec2.send(new DescribeVpcEndpointsCommand({ Filters })),
  ]);
  const loops = await natLoops(ec2, vpcId, RouteTables);
  const routes = found.subnets.map(({ SubnetId = '' }) => routesOf(RouteTables, SubnetId, loops));
  const endpoints = usableEndpoints(VpcEndpoints, region).filter(
    ({ service, RouteTableIds: ids }) =>
      (service === 's3' || services.some((one) => one.service === service)) &&
      (!ids?.length || routes.some((one) => one && ids.includes(one.tableId))),
  );
  const hasS3Interface = endpoints.some(({ service, RouteTableIds: ids }) => service === 's3' && !ids?.length);
  return [
    ...found.subnets.flatMap((subnet, index) => subnetIssues(network, subnet, routes[index], endpoints)),
    ...endpoints.flatMap((one) => policyIssues(one, one.service === 's3' ? found.buckets : [])),
    ...(hasS3Interface ? [] : outboundIssues(found.groups)),
  ];
}

function subnetIssues(
  network: ExistingNetwork,
  { SubnetId = '', OwnerId = network.account }: Subnet,
  routes: Routes | undefined,
  endpoints: readonly UsableEndpoint[],
): Issue[] {
  const level = OwnerId === network.account ? 'error' : 'warning';
  if (routes === undefined)
    return [
      networkIssue('warning', 'subnetIds', {
        must: 'must reach S3',
        got: `${SubnetId} of account ${OwnerId}, whose routes this account cannot see`,
        fix: 'ask its owner whether its route table has an endpoint for S3',
      }),
    ];
  if (routes.leavesVpc) return [];
  const has = (name: string) =>
    endpoints.some(
      ({ service, RouteTableIds: ids }) => service === name && (!ids?.length || ids.includes(routes.tableId)),
    );
  const noService = network.services.filter(({ service }) => !has(service));
  return [
    ...(has('s3') ? [] : [noWayToS3(level, network, SubnetId, routes)]),
    ...noService.map(({ service, option }) =>
      networkIssue(level, 'vpcId', {
        must: `must have an interface endpoint for ${service} with private DNS, which ${option} requires`,
        got: `${network.vpcId}, where ${SubnetId} has no other route to it`,
        fix: 'create it, or give the subnet a route to a NAT gateway',
      }),
    ),
  ];
}

function noWayToS3(level: Issue['level'], { vpcId, region }: ExistingNetwork, subnetId: string, routes: Routes): Issue {
  const { tableId, hasInternetGateway, hasNatLoop } = routes;
  const natOrNothing = hasNatLoop ? 'only a NAT gateway in a loop' : 'no route out of the VPC';
  const nat = hasNatLoop ? ', which a NAT gateway does only from a subnet with another default route' : '';
  return networkIssue(level, 'subnetIds', {
    must: `must reach S3${hasInternetGateway ? ' from private addresses, because jobs have no public ones' : nat}`,
    got: `${subnetId}, whose route table has ${hasInternetGateway ? 'only an internet gateway' : natOrNothing}`,
    fix: `add a gateway endpoint: aws ec2 create-vpc-endpoint --region ${region} --vpc-id ${vpcId} --service-name com.amazonaws.${region}.s3 --route-table-ids ${tableId}`,
  });
}

/**
 * SageMaker starts no job in a VPC whose DHCP options lack one of two names (https://github.com/aws/sagemaker-python-sdk/issues/3955,
 * 2026-11-30). A VPC that shows none of its options is left alone.
 */
async function nameIssues(ec2: EC2Client, network: ExistingNetwork, vpc: Vpc = {}): Promise<Issue[]> {
  const { DhcpOptionsId: id = '', OwnerId } = vpc;
  const { DhcpOptions = [] } = id.startsWith('dopt-')
    ? await ec2.send(new DescribeDhcpOptionsCommand({ DhcpOptionsIds: [id] }))
    : {};
  const entries = DhcpOptions.flatMap(({ DhcpConfigurations = [] }) => DhcpConfigurations);
  const lacking = ['domain-name', 'domain-name-servers'].filter((key) => !entries.some(({ Key }) => Key === key));
  const servers = entries.flatMap(({ Key, Values = [] }) => (Key === 'domain-name-servers' ? Values : []));
  const isOfVpc = servers.length === 0 || servers.some(({ Value }) => Value === 'AmazonProvidedDNS');
  // Only the owner of a VPC sees its attributes.
  const attributes = isOfVpc && OwnerId === network.account ? await dnsIssues(ec2, network) : [];
  if (DhcpOptions.length === 0 || lacking.length === 0) return attributes;
  return [
    ...attributes,
    networkIssue('warning', 'vpcId', {
      must: 'must have DHCP options with domain-name and domain-name-servers, without which SageMaker starts no job',
      got: `${id} without ${lacking.join(' and ')}`,
      fix: 'associate the VPC with DHCP options that have both',
    }),
  ];
}

/**
 * Issues of a VPC whose own name servers do not answer, or do not know the private names of endpoints
 * (https://docs.aws.amazon.com/vpc/latest/userguide/AmazonDNS-concepts.html, 2026-11-30).
 */
async function dnsIssues(ec2: EC2Client, { vpcId: VpcId, services }: ExistingNetwork): Promise<Issue[]> {
  const [support, hostnames] = await Promise.all(
    (['enableDnsSupport', 'enableDnsHostnames'] as const).map((Attribute) =>
      ec2.send(new DescribeVpcAttributeCommand({ VpcId, Attribute })),
    ),
  );
  const answers = support?.EnableDnsSupport?.Value !== false;
  if (answers && (services.length === 0 || hostnames?.EnableDnsHostnames?.Value !== false)) return [];
  const [option, flag, why] = answers
    ? ['enableDnsHostnames', 'hostnames', 'private names of endpoints']
    : ['enableDnsSupport', 'support', 'names'];
  return [
    networkIssue(answers ? 'warning' : 'error', 'vpcId', {
      must: `must have ${option}, without which jobs find no ${why}`,
      got: `${VpcId} without it`,
      fix: `run aws ec2 modify-vpc-attribute --vpc-id ${VpcId} --enable-dns-${flag}`,
    }),
  ];
}

/** All instances of a job are placed in one zone, so one subnet must have enough addresses for them. */
function addressIssues({ addresses }: ExistingNetwork, subnets: readonly Subnet[]): Issue[] {
  const most = Math.max(...subnets.map(({ AvailableIpAddressCount = 0 }) => AvailableIpAddressCount));
  if (most >= addresses) return [];
  return [
    networkIssue('warning', 'subnetIds', {
      must: `must have ${addresses} free addresses in one subnet for the largest entry of quotas.require`,
      got: `${most} in the largest`,
      fix: 'use a larger subnet, or free addresses before such a run starts',
    }),
  ];
}
