import {
  DescribeRouteTablesCommand,
  DescribeSecurityGroupsCommand,
  DescribeSubnetsCommand,
  DescribeVpcEndpointsCommand,
  DescribeVpcsCommand,
  type EC2Client,
  type SecurityGroup,
  type Subnet,
  type VpcEndpoint,
} from '@aws-sdk/client-ec2';
import type { ExistingNetwork } from '../../spec/environment/existing-network';
import { type Issue, issue } from '../../spec/issue';
import { type Routes, routesOf } from './routes';
import { selfReachingGroups } from './security-groups';

const PATH = 'network.existing';
const problem = (level: Issue['level'], option: string, said: { must: string; got: string; fix: string }): Issue =>
  issue('preflight/network', level, `${PATH}.${option}`, said);

/**
 * What is wrong with a VPC that an environment uses and does not make: ids, routes to S3 and to what its options need, rules of the groups (errors), and
 * free addresses (warnings). Of subnets that another account shares, routes and endpoints may not be visible: what is not seen there is a warning.
 * https://docs.aws.amazon.com/sagemaker/latest/dg/train-vpc.html and
 * https://docs.aws.amazon.com/vpc/latest/userguide/vpc-share-limitations.html, 2026-11-24.
 * @throws what EC2 answers to a caller who may not look
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
    ...(await reachIssues(ec2, network, subnets)),
    ...groupIssues(network, groups),
    ...addressIssues(network, subnets),
  ];
}

/** Undefined when one of the ids is of nothing that the account can see. */
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
    fix: 'correct the ids, or have them shared with the account',
  });

function elsewhere(option: string, vpcId: string, found: readonly (Subnet | SecurityGroup)[]): Issue[] {
  const ids = found
    .filter((one) => one.VpcId !== vpcId)
    .map((one) => `${'SubnetId' in one ? one.SubnetId : (one as SecurityGroup).GroupId} in ${one.VpcId}`);
  if (ids.length === 0) return [];
  return [
    problem('error', option, { must: `must be in ${vpcId}`, got: ids.join(', '), fix: 'name those of that VPC' }),
  ];
}

/** Services with an interface endpoint that carries calls of the jobs, by the last part of their names, and route tables with the endpoint of S3. */
function usableEndpoints(all: readonly VpcEndpoint[], region: string) {
  const usable = all.filter(({ State = 'available' }) => /^available$/i.test(State));
  // com.amazonaws.<region>.<service>, or aws.sagemaker.<region>.experiments.
  const nameOf = (service = '') => service.replace(new RegExp(`^[a-z.]+?\\.${region}\\.`), '');
  const gateways = usable.filter(
    ({ VpcEndpointType, ServiceName }) => VpcEndpointType === 'Gateway' && nameOf(ServiceName) === 's3',
  );
  return {
    tablesWithS3: new Set(gateways.flatMap(({ RouteTableIds = [] }) => RouteTableIds)),
    // Without private DNS the name of the service leads past the endpoint.
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
          got: `${SubnetId} of account ${OwnerId}, whose routes this account does not see`,
          fix: 'ask its owner whether its route table has an endpoint of S3',
        }),
      ];
    if (routes.leavesVpc) return [];
    const hasS3 = interfaces.has('s3') || tablesWithS3.has(routes.tableId);
    const noService = network.services.filter(({ service }) => !interfaces.has(service));
    return [
      ...(hasS3 ? [] : [noWayToS3(level, network, SubnetId, routes)]),
      ...noService.map(({ service, option }) =>
        problem(level, 'vpcId', {
          must: `must have an interface endpoint of ${service} with private DNS, which ${option} needs`,
          got: `${vpcId}, of which ${SubnetId} has no other way to it`,
          fix: 'make it, or give the subnet a route to a NAT gateway',
        }),
      ),
    ];
  });
}

function noWayToS3(level: Issue['level'], { vpcId, region }: ExistingNetwork, subnetId: string, routes: Routes): Issue {
  const only = routes.hasInternetGateway ? 'only an internet gateway' : 'no way out';
  return problem(level, 'subnetIds', {
    must: routes.hasInternetGateway
      ? 'must reach S3 from private addresses, which is all that jobs have'
      : 'must reach S3',
    got: `${subnetId}, whose route table ${routes.tableId} has ${only}`,
    fix: `add a gateway endpoint: aws ec2 create-vpc-endpoint --region ${region} --vpc-id ${vpcId} --service-name com.amazonaws.${region}.s3 --route-table-ids ${routes.tableId}`,
  });
}

/** Hosts of a job reach each other through their group; EFA takes no rule that names addresses. */
function groupIssues({ securityGroupIds, usesEfa }: ExistingNetwork, groups: readonly SecurityGroup[]): Issue[] {
  if (selfReachingGroups(groups).length > 0) return [];
  const [first = ''] = securityGroupIds;
  return [
    problem(usesEfa ? 'error' : 'warning', 'securityGroupIds', {
      must: 'must have a group with all traffic from and to itself, which jobs of several instances and EFA need',
      got: securityGroupIds.join(', '),
      fix: `add both rules: aws ec2 authorize-security-group-ingress --group-id ${first} --protocol=-1 --source-group ${first} and aws ec2 authorize-security-group-egress --group-id ${first} --ip-permissions IpProtocol=-1,UserIdGroupPairs=[{GroupId=${first}}]`,
    }),
  ];
}

/** All instances of a job land in one zone, so that one subnet must hold them. */
function addressIssues({ addresses }: ExistingNetwork, subnets: readonly Subnet[]): Issue[] {
  const most = Math.max(...subnets.map(({ AvailableIpAddressCount = 0 }) => AvailableIpAddressCount));
  if (most >= addresses) return [];
  return [
    problem('warning', 'subnetIds', {
      must: `must have ${addresses} free addresses in one subnet for the largest entry of quotas.require`,
      got: `${most} in the largest`,
      fix: 'name a larger subnet, or free addresses before such a run starts',
    }),
  ];
}
