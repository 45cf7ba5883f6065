import {
  DescribeAvailabilityZonesCommand,
  DescribeInstanceTypeOfferingsCommand,
  DescribeVpcEndpointServicesCommand,
  EC2Client,
  type ServiceDetail,
} from '@aws-sdk/client-ec2';
import { servicesOf } from '../../../core/config/environment/network';
import type { EnvironmentSpec } from '../../../core/config/environment-file';
import type { Issue } from '../../../core/config/issue';
import { embeddedEndpoint } from '../../../shared/environment/embedded-endpoint';
import { awsClient } from '../../aws-client';
import { found, inspect, type ResourceCheck } from './environment-checks';

/** EC2 in the region of an environment. */
export const ec2In = ({ region }: EnvironmentSpec) => awsClient(EC2Client, { region, maxAttempts: 3 });
/** Service names whose last part differs from the endpoint's name in the environment file. */
export const SERVICE_NAMES: Readonly<Record<string, readonly string[]>> = {
  ecr: ['ecr.api', 'ecr.dkr'],
  sagemaker: ['sagemaker.api'],
};

/** Ends of the names of the interface endpoint services of an environment's own network. */
export const endpointNames = (environment: EnvironmentSpec): string[] => [
  ...(environment.network.endpoints ?? []).flatMap((name) => SERVICE_NAMES[name] ?? [name]),
  ...servicesOf(environment).map(({ service }) => service),
];

type Zone = { name: string; id: string };

/** Zones of the network, by name and id; all of the Region unless the file names some. */
async function zonesOf(ec2: EC2Client, { network, region }: EnvironmentSpec): Promise<Zone[]> {
  const filters = [{ Name: 'zone-type', Values: ['availability-zone'] }];
  const { AvailabilityZones = [] } = await ec2.send(new DescribeAvailabilityZonesCommand({ Filters: filters }));
  const own = AvailabilityZones.map(({ ZoneName = '', ZoneId = '' }) => ({ name: ZoneName, id: ZoneId }));
  const ids = network.availabilityZoneIds;
  return own.filter(({ name, id }) => name.startsWith(region) && (ids === 'all' || ids.includes(id)));
}

/**
 * Details of endpoint services of a region, by the end of their names. Regions outside the partition aws have prefixes of their own for some services
 * (`cn.com.amazonaws.cn-north-1.ecr.api`), so that all are listed.
 */
export async function servicesIn(
  ec2: EC2Client,
  region: string,
  names: readonly string[],
): Promise<Map<string, ServiceDetail>> {
  const found = new Map<string, ServiceDetail>();
  let NextToken: string | undefined;
  do {
    const page = await ec2.send(new DescribeVpcEndpointServicesCommand({ NextToken }));
    for (const detail of page.ServiceDetails ?? []) {
      const name = names.find((one) => detail.ServiceName?.endsWith(`.${region}.${one}`));
      if (name) found.set(name, detail);
    }
    NextToken = page.NextToken || undefined;
  } while (NextToken);
  return found;
}

/** An interface endpoint can only be in zones in which its service is; one zone too many fails the deploy in the middle. */
export async function endpointZoneCheck(environment: EnvironmentSpec): Promise<ResourceCheck | undefined> {
  const { network, region } = environment;
  const names = endpointNames(environment);
  if (network.mode !== 'vpc-locked' || names.length === 0) return undefined;
  const ec2 = ec2In(environment);
  return inspect('zones of endpoints', 'ec2:DescribeVpcEndpointServices', `${names.length} services`, async () => {
    const [zones, services] = await Promise.all([zonesOf(ec2, environment), servicesIn(ec2, region, names)]);
    const unknown = names.filter((name) => !services.has(name));
    if (unknown.length > 0)
      return found('endpoint-services', 'error', 'network.endpoints', {
        must: `must name services that ${region} has`,
        got: unknown.join(', '),
        fix: 'remove the service, or use another region',
      });
    const everywhere = zones.filter(({ name }) =>
      [...services.values()].every(({ AvailabilityZones = [] }) => AvailabilityZones.includes(name)),
    );
    return zoneIssues(zones, everywhere);
  });
}

function zoneIssues(zones: readonly Zone[], everywhere: readonly Zone[]): Issue[] {
  if (everywhere.length === zones.length) return [];
  const lacking = zones.filter((zone) => !everywhere.includes(zone)).map(({ id }) => id);
  return found('endpoint-zones', 'error', 'network.availabilityZoneIds', {
    must: 'must contain only zones that have every service of network.endpoints',
    got: lacking.join(', '),
    fix:
      everywhere.length > 0
        ? `write network: { availabilityZoneIds: [${everywhere.map(({ id }) => id).join(', ')}] }`
        : 'remove a service from network.endpoints that no zone has together with the others',
  });
}

/** Zone ids by instance type. EC2 knows a SageMaker type without `ml.`; no API shows whether SageMaker also offers it in the zone. */
export async function zonesByType(ec2: EC2Client, types: readonly string[]): Promise<Record<string, string[]>> {
  const zones: Record<string, string[]> = Object.fromEntries(types.map((type) => [type, []]));
  if (types.length === 0) return zones;
  const Filters = [{ Name: 'instance-type', Values: types.map((type) => type.replace(/^ml\./, '')) }];
  const { InstanceTypeOfferings = [] } = await ec2.send(
    new DescribeInstanceTypeOfferingsCommand({ LocationType: 'availability-zone-id', Filters }),
  );
  for (const { InstanceType, Location } of InstanceTypeOfferings) {
    if (Location) zones[`ml.${InstanceType}`]?.push(Location);
  }
  for (const ids of Object.values(zones)) ids.sort();
  return zones;
}

/** Instance types of quotas.require that EC2 offers in no zone of the network. */
export async function typeZoneCheck(environment: EnvironmentSpec): Promise<ResourceCheck | undefined> {
  const types = [...new Set(environment.quotas.require.map(({ instanceType }) => instanceType))];
  // The embedded AWS offers every type in every zone.
  if (types.length === 0 || embeddedEndpoint()) return undefined;
  const ec2 = ec2In(environment);
  return inspect('zones of instance types', 'ec2:DescribeInstanceTypeOfferings', types.join(', '), async () => {
    const [zones, offered] = await Promise.all([zonesOf(ec2, environment), zonesByType(ec2, types)]);
    const ids = zones.map(({ id }) => id);
    return Object.entries(offered).flatMap(([type, at]) => {
      if (at.length === 0 || at.some((id) => ids.includes(id))) return [];
      return found('type-zones', 'error', 'network.availabilityZoneIds', {
        must: `must contain a zone with ${type}`,
        got: ids.join(', '),
        fix: `add ${at.join(' or ')}`,
      });
    });
  });
}
