import { DescribeNatGatewaysCommand, type EC2Client, type Route, type RouteTable } from '@aws-sdk/client-ec2';

/** Default routes in the route table of a subnet. */
export interface Routes {
  tableId: string;
  /** Whether a default route leads out of the VPC for private addresses, which are the only ones that jobs have. */
  leavesVpc: boolean;
  hasInternetGateway: boolean;
  hasNatLoop: boolean;
}

const isInternetGateway = ({ GatewayId }: Route): boolean => GatewayId?.startsWith('igw-') === true;

/** The subnet's own route table, or the VPC's main table; undefined when neither is among the tables. */
const tableOf = (tables: readonly RouteTable[], subnetId: string): RouteTable | undefined =>
  tables.find(({ Associations = [] }) => Associations.some((one) => one.SubnetId === subnetId)) ??
  tables.find(({ Associations = [] }) => Associations.some(({ Main }) => Main));

const defaultRoutes = ({ Routes: routes = [] }: RouteTable): Route[] =>
  routes.filter(({ State, DestinationCidrBlock }) => State !== 'blackhole' && DestinationCidrBlock === '0.0.0.0/0');

/** NAT gateways in subnets from which no default route leads to anything else. */
export async function natLoops(ec2: EC2Client, vpcId: string, tables: readonly RouteTable[]): Promise<Set<string>> {
  if (!tables.some((table) => defaultRoutes(table).some(({ NatGatewayId }) => NatGatewayId))) return new Set();
  const Filter = [{ Name: 'vpc-id', Values: [vpcId] }];
  const { NatGateways = [] } = await ec2.send(new DescribeNatGatewaysCommand({ Filter }));
  const loops = NatGateways.filter(({ NatGatewayId, SubnetId }) => {
    // A regional NAT gateway is in no subnet.
    const table = SubnetId && tableOf(tables, SubnetId);
    return table && defaultRoutes(table).every((route) => route.NatGatewayId === NatGatewayId);
  });
  return new Set(loops.map(({ NatGatewayId = '' }) => NatGatewayId));
}

/** Routes of a subnet; undefined when its route table is not among the tables. */
export function routesOf(
  tables: readonly RouteTable[],
  subnetId: string,
  loops: ReadonlySet<string>,
): Routes | undefined {
  const table = tableOf(tables, subnetId);
  if (!table) return undefined;
  const ways = defaultRoutes(table);
  const isLoop = ({ NatGatewayId = '' }: Route) => loops.has(NatGatewayId);
  return {
    tableId: table.RouteTableId ?? '',
    leavesVpc: ways.some((route) => !isInternetGateway(route) && !isLoop(route)),
    hasInternetGateway: ways.some(isInternetGateway),
    hasNatLoop: ways.some(isLoop),
  };
}
