import {
  DescribeDhcpOptionsCommand,
  DescribeRouteTablesCommand,
  DescribeSecurityGroupsCommand,
  DescribeSubnetsCommand,
  DescribeVpcEndpointsCommand,
  DescribeVpcsCommand,
  type EC2Client,
  type Route,
  type RouteTable,
  type SecurityGroup,
  type Subnet,
  type VpcEndpoint,
} from '@aws-sdk/client-ec2';
import type { ExistingNetwork } from '../../../core/config/environment/network';
import { type Issue, issue } from '../../../core/config/issue';

/** The groups that allow every protocol from and to their own members, which EFA needs. */
export const selfReachingGroups = (groups: readonly SecurityGroup[]): SecurityGroup[] =>
  groups.filter(({ GroupId, IpPermissions, IpPermissionsEgress }) =>
    [IpPermissions, IpPermissionsEgress].every((rules = []) =>
      rules.some((r) => r.IpProtocol === '-1' && r.UserIdGroupPairs?.some((pair) => pair.GroupId === GroupId)),
    ),
  );

const PATH = 'network.existing';
const problem = (level: Issue['level'], option: string, text: { must: string; got: string; fix: string }): Issue =>
  issue('preflight/network', level, `${PATH}.${option}`, text);

/**
 * Checks an existing VPC: ids, routes to S3 and to the services that the options need, and security group rules (errors), and free
 * addresses (warnings). Routes and endpoints of shared subnets may not be visible to this account, so their absence is only a warning.
 * https://docs.aws.amazon.com/sagemaker/latest/dg/train-vpc.html and
 * https://docs.aws.amazon.com/vpc/latest/userguide/vpc-share-limitations.html, 2026-11-24.
 * @throws the error of EC2 when the caller lacks a permission
 */
export async function existingNetworkIssues(ec2: EC2Client, network: ExistingNetwork): Promise<Issue[]> {
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
    ...(await nameIssues(ec2, vpc?.[0]?.DhcpOptionsId)),
    ...(await reachIssues(ec2, network, subnets)),
    ...groupIssues(network, groups),
    ...addressIssues(network, subnets),
  ];
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
  problem('error', option, {
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
    problem('error', option, { must: `must be in ${vpcId}`, got: ids.join(', '), fix: 'use resources of that VPC' }),
  ];
}

/**
 * Services whose interface endpoint the jobs can use, by the last part of the service name, and route tables with the gateway endpoint of
 * S3.
 */
function usableEndpoints(all: readonly VpcEndpoint[], region: string) {
  const usable = all.filter(({ State = 'available' }) => /^available$/i.test(State));
  // com.amazonaws.<region>.<service>, or aws.sagemaker.<region>.experiments.
  const nameOf = (service = '') => service.replace(new RegExp(`^[a-z.]+?\\.${region}\\.`), '');
  const gateways = usable.filter(
    ({ VpcEndpointType, ServiceName }) => VpcEndpointType === 'Gateway' && nameOf(ServiceName) === 's3',
  );
  return {
    tablesWithS3: new Set(gateways.flatMap(({ RouteTableIds = [] }) => RouteTableIds)),
    // Without private DNS, the service's domain name does not resolve to the endpoint.
    interfaces: new Set(
      usable
        .filter(
          ({ VpcEndpointType, PrivateDnsEnabled }) => VpcEndpointType === 'Interface' && PrivateDnsEnabled !== false,
        )
        .map(({ ServiceName }) => nameOf(ServiceName)),
    ),
  };
}

async function reachIssues(ec2: EC2Client, network: ExistingNetwork, subnets: readonly Subnet[]): Promise<Issue[]> {
  const { vpcId, account, region } = network;
  const Filters = [{ Name: 'vpc-id', Values: [vpcId] }];
  const [{ RouteTables = [] }, { VpcEndpoints = [] }] = await Promise.all([
    ec2.send(new DescribeRouteTablesCommand({ Filters })),
    ec2.send(new DescribeVpcEndpointsCommand({ Filters })),
  ]);
  const { interfaces, tablesWithS3 } = usableEndpoints(VpcEndpoints, region);
  return subnets.flatMap((subnet): Issue[] => {
    const { SubnetId = '', OwnerId = account } = subnet;
    const routes = routesOf(RouteTables, SubnetId);
    const level = OwnerId === account ? 'error' : 'warning';
    if (routes === undefined)
      return [
        problem('warning', 'subnetIds', {
          must: 'must reach S3',
          got: `${SubnetId} of account ${OwnerId}, whose routes this account cannot see`,
          fix: 'ask its owner whether its route table has an endpoint for S3',
        }),
      ];
    if (routes.leavesVpc) return [];
    const hasS3 = interfaces.has('s3') || tablesWithS3.has(routes.tableId);
    const noService = network.services.filter(({ service }) => !interfaces.has(service));
    return [
      ...(hasS3 ? [] : [noWayToS3(level, network, SubnetId, routes)]),
      ...noService.map(({ service, option }) =>
        problem(level, 'vpcId', {
          must: `must have an interface endpoint for ${service} with private DNS, which ${option} requires`,
          got: `${vpcId}, where ${SubnetId} has no other route to it`,
          fix: 'create it, or give the subnet a route to a NAT gateway',
        }),
      ),
    ];
  });
}

function noWayToS3(level: Issue['level'], { vpcId, region }: ExistingNetwork, subnetId: string, routes: Routes): Issue {
  const only = routes.hasInternetGateway ? 'only an internet gateway' : 'no route out of the VPC';
  return problem(level, 'subnetIds', {
    must: routes.hasInternetGateway
      ? 'must reach S3 from private addresses, because jobs have no public ones'
      : 'must reach S3',
    got: `${subnetId}, whose route table ${routes.tableId} has ${only}`,
    fix: `add a gateway endpoint: aws ec2 create-vpc-endpoint --region ${region} --vpc-id ${vpcId} --service-name com.amazonaws.${region}.s3 --route-table-ids ${routes.tableId}`,
  });
}

/**
 * SageMaker starts no job in a VPC whose DHCP options lack one of two names (https://github.com/aws/sagemaker-python-sdk/issues/3955,
 * 2026-11-30). A VPC that shows none of its options is left alone.
 */
async function nameIssues(ec2: EC2Client, id: string | undefined): Promise<Issue[]> {
  if (!id?.startsWith('dopt-')) return [];
  const { DhcpOptions = [] } = await ec2.send(new DescribeDhcpOptionsCommand({ DhcpOptionsIds: [id] }));
  const keys = DhcpOptions.flatMap(({ DhcpConfigurations = [] }) => DhcpConfigurations.map(({ Key }) => Key));
  const lacking = ['domain-name', 'domain-name-servers'].filter((key) => !keys.includes(key));
  if (DhcpOptions.length === 0 || lacking.length === 0) return [];
  return [
    problem('warning', 'vpcId', {
      must: 'must have DHCP options with domain-name and domain-name-servers, without which SageMaker starts no job',
      got: `${id} without ${lacking.join(' and ')}`,
      fix: 'associate the VPC with DHCP options that have both',
    }),
  ];
}

/** The hosts of a job communicate through their security group; EFA requires rules that reference the group, not address ranges. */
function groupIssues({ securityGroupIds, usesEfa }: ExistingNetwork, groups: readonly SecurityGroup[]): Issue[] {
  if (selfReachingGroups(groups).length > 0) return [];
  const [first = ''] = securityGroupIds;
  return [
    problem(usesEfa ? 'error' : 'warning', 'securityGroupIds', {
      must: 'must include a group that allows all traffic from and to itself, which multi-instance jobs and EFA require',
      got: securityGroupIds.join(', '),
      fix: `add both rules: aws ec2 authorize-security-group-ingress --group-id ${first} --protocol=-1 --source-group ${first} and aws ec2 authorize-security-group-egress --group-id ${first} --ip-permissions IpProtocol=-1,UserIdGroupPairs=[{GroupId=${first}}]`,
    }),
  ];
}

/** All instances of a job are placed in one zone, so one subnet must have enough addresses for them. */
function addressIssues({ addresses }: ExistingNetwork, subnets: readonly Subnet[]): Issue[] {
  const most = Math.max(...subnets.map(({ AvailableIpAddressCount = 0 }) => AvailableIpAddressCount));
  if (most >= addresses) return [];
  return [
    problem('warning', 'subnetIds', {
      must: `must have ${addresses} free addresses in one subnet for the largest entry of quotas.require`,
      got: `${most} in the largest`,
      fix: 'use a larger subnet, or free addresses before such a run starts',
    }),
  ];
}

/** Default routes in the route table of a subnet. */
interface Routes {
  tableId: string;
  /** Whether a default route leads out of the VPC for private addresses, which are the only ones that jobs have. */
  leavesVpc: boolean;
  hasInternetGateway: boolean;
}

const isEverything = ({ DestinationCidrBlock }: Route): boolean => DestinationCidrBlock === '0.0.0.0/0';
const isInternetGateway = ({ GatewayId }: Route): boolean => GatewayId?.startsWith('igw-') === true;

/** Routes of a subnet: those of its own table, or of the VPC's main table; undefined when neither is among the tables. */
function routesOf(tables: readonly RouteTable[], subnetId: string): Routes | undefined {
  const table =
    tables.find(({ Associations = [] }) => Associations.some((one) => one.SubnetId === subnetId)) ??
    tables.find(({ Associations = [] }) => Associations.some(({ Main }) => Main));
  if (!table) return undefined;
  const routes = (table.Routes ?? []).filter(({ State }) => State !== 'blackhole');
  const ways = routes.filter(isEverything);
  return {
    tableId: table.RouteTableId ?? '',
    leavesVpc: ways.some((route) => !isInternetGateway(route)),
    hasInternetGateway: ways.some(isInternetGateway),
  };
}
