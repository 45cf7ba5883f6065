import { Tags } from 'aws-cdk-lib';
import * as ec2 from 'aws-cdk-lib/aws-ec2';
import type { PlannedSubnets } from '../../core/catalog/subnet-plan';

/**
 * Subnets of the jobs, one per zone, below the VPC and with the names that the CDK would use. The CDK's VPC numbers subnets and assigns
 * address ranges by the position of a zone in a list, so that adding or removing a zone would replace the subnets after it.
 */
export function jobSubnets(vpc: ec2.Vpc, plan: readonly PlannedSubnets[], isLocked: boolean): ec2.PrivateSubnet[] {
  return plan.map(({ zone, number, cidr }) => {
    const subnet = new ec2.PrivateSubnet(vpc, `trainingSubnet${number}`, {
      ...placed(vpc, zone),
      cidrBlock: cidr,
      mapPublicIpOnLaunch: false,
    });
    return inZone(subnet, zone, 'training', isLocked ? 'Isolated' : 'Private');
  });
}

/** A public subnet for each zone, and one NAT gateway in the zone with the lowest number: adding a lower one moves it. */
export function addNat(vpc: ec2.Vpc, plan: readonly PlannedSubnets[], jobs: readonly ec2.PrivateSubnet[]): void {
  const gateway = new ec2.CfnInternetGateway(vpc, 'IGW');
  const attachment = new ec2.CfnVPCGatewayAttachment(vpc, 'VPCGW', {
    internetGatewayId: gateway.ref,
    vpcId: vpc.vpcId,
  });
  Tags.of(gateway).add('Name', vpc.node.path);
  const edges = plan.map(({ zone, number, edgeCidr }) => {
    const edge = new ec2.PublicSubnet(vpc, `edgeSubnet${number}`, {
      ...placed(vpc, zone),
      cidrBlock: edgeCidr,
      mapPublicIpOnLaunch: false,
    });
    edge.addDefaultInternetRoute(gateway.ref, attachment);
    return inZone(edge, zone, 'edge', 'Public');
  });
  const nat = edges[0]?.addNatGateway();
  if (nat) for (const subnet of jobs) subnet.addDefaultNatRoute(nat.ref);
}

const isZoneId = (zone: string): boolean => /-az\d+$/.test(zone);

/** A subnet is placed by zone name or zone id; the construct requires a name, which `inZone` removes again. */
const placed = (vpc: ec2.Vpc, zone: string) => ({ vpcId: vpc.vpcId, availabilityZone: zone });

/** Places subnets by zone id if one is given: zone names differ between accounts, zone ids do not. */
function inZone<T extends ec2.Subnet>(subnet: T, zone: string, name: string, type: string): T {
  const resource = subnet.node.defaultChild as ec2.CfnSubnet;
  if (isZoneId(zone)) {
    resource.availabilityZone = undefined;
    resource.availabilityZoneId = zone;
  }
  const only = { includeResourceTypes: [ec2.CfnSubnet.CFN_RESOURCE_TYPE_NAME] };
  Tags.of(subnet).add('aws-cdk:subnet-name', name, only);
  Tags.of(subnet).add('aws-cdk:subnet-type', type, only);
  return subnet;
}
