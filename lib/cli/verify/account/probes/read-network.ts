import {
  DescribeAvailabilityZonesCommand,
  DescribeVpcEndpointServicesCommand,
  DescribeVpcEndpointsCommand,
} from '@aws-sdk/client-ec2';
import { zoneIdPrefix } from '../../../../core/catalog/subnet-plan';
import { holdsIf, noneOf, type Probe, probe, type ReadWorld, unknown } from '../probe';

interface Zone {
  name: string;
  id: string;
}

async function zonesOf({ ec2 }: ReadWorld): Promise<Zone[]> {
  const { AvailabilityZones = [] } = await ec2.send(new DescribeAvailabilityZonesCommand({}));
  return AvailabilityZones.filter((zone) => (zone.ZoneType ?? 'availability-zone') === 'availability-zone').map(
    ({ ZoneName = '', ZoneId = '' }) => ({ name: ZoneName, id: ZoneId }),
  );
}

/** Missing protections of a bucket that the environment configured. */
export const NETWORK_PROBES: readonly Probe<ReadWorld>[] = [
  probe('zone-ids', 'a prefix of the zone ids', async (world) => {
    const prefix = zoneIdPrefix(world.region);
    if (!prefix) return unknown(`the catalog has none for ${world.region}`);
    const ids = (await zonesOf(world)).map(({ id }) => id);
    const expected = `zone ids that start with ${prefix}-az`;
    if (ids.length === 0) return unknown('the Region returned no zones', expected);
    const isExpected = ids.every((id) => id.startsWith(`${prefix}-az`));
    return holdsIf(isExpected, ids.join(', '), expected);
  }),
  probe('endpoint-zones', 'every endpoint service of the network in every zone of its subnets', async (world) => {
    const ids = await world.resourcesOf('AWS::EC2::VPCEndpoint');
    if (ids.length === 0) return unknown('no deployed network with endpoints');
    const { VpcEndpoints = [] } = await world.ec2.send(new DescribeVpcEndpointsCommand({ VpcEndpointIds: ids }));
    const names = VpcEndpoints.filter((e) => e.VpcEndpointType === 'Interface').flatMap((e) => e.ServiceName ?? []);
    if (names.length === 0) return unknown('no interface endpoint');
    const { ServiceDetails = [] } = await world.ec2.send(
      new DescribeVpcEndpointServicesCommand({ ServiceNames: names }),
    );
    const zones = (await zonesOf(world)).map(({ name }) => name);
    const lacking = ServiceDetails.flatMap(({ ServiceName, AvailabilityZones = [] }) =>
      zones.filter((zone) => !AvailabilityZones.includes(zone)).map((zone) => `${ServiceName} is not in ${zone}`),
    );
    return noneOf(lacking, `${names.length} services in ${zones.length} zones`);
  }),
];
