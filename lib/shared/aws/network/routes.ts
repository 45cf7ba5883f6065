import type { Route, RouteTable } from '@aws-sdk/client-ec2';

/** Default routes in the route table of a subnet. */
export interface Routes {
  tableId: string;
  /** Whether a default route leads out of the VPC for private addresses, which are the only ones that jobs have. */
  leavesVpc: boolean;
  hasInternetGateway: boolean;
}

const isEverything = ({ DestinationCidrBlock }: Route): boolean => DestinationCidrBlock === '0.0.0.0/0';
const isInternetGateway = ({ GatewayId }: Route): boolean => GatewayId?.startsWith('igw-') === true;

/** Routes of a subnet: those of its own table, or of the VPC's main table; undefined when neither is among the tables. */
export function routesOf(tables: readonly RouteTable[], subnetId: string): Routes | undefined {
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
