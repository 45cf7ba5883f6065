import {
  DescribeAvailabilityZonesCommand,
  DescribeSecurityGroupsCommand,
  DescribeVpcEndpointServicesCommand,
  DescribeVpcEndpointsCommand,
} from '@aws-sdk/client-ec2';
import {
  GetBucketEncryptionCommand,
  GetBucketPolicyCommand,
  GetBucketVersioningCommand,
  GetPublicAccessBlockCommand,
} from '@aws-sdk/client-s3';
import { zoneIdPrefix } from '../../../../core/catalog/subnet-plan';
import { selfReachingGroups } from '../../../../shared/aws/network/security-groups';
import { holdsIf, noneOf, type Probe, probe, type ReadWorld, unknown } from '../probe';

async function zonesOf({ ec2 }: ReadWorld) {
  const { AvailabilityZones = [] } = await ec2.send(new DescribeAvailabilityZonesCommand({}));
  return AvailabilityZones.filter(({ ZoneType = 'availability-zone' }) => ZoneType === 'availability-zone');
}

/** Missing protections of a bucket that the environment configured. */
async function gapsOf({ s3 }: ReadWorld, Bucket: string, kind: string): Promise<string[]> {
  const gaps: string[] = [];
  const want = async (what: string, read: () => Promise<boolean>) => {
    const missing = await read().catch((error: Error) => {
      if (/AccessDenied/.test(error.name)) throw error;
      return false;
    });
    if (!missing) gaps.push(`${kind} bucket: no ${what}`);
  };
  await want('KMS encryption', async () => {
    const { ServerSideEncryptionConfiguration: rules } = await s3.send(new GetBucketEncryptionCommand({ Bucket }));
    return rules?.Rules?.[0]?.ApplyServerSideEncryptionByDefault?.SSEAlgorithm === 'aws:kms';
  });
  await want(
    'versioning',
    async () => (await s3.send(new GetBucketVersioningCommand({ Bucket }))).Status === 'Enabled',
  );
  await want('public access block', async () => {
    const { PublicAccessBlockConfiguration: block = {} } = await s3.send(new GetPublicAccessBlockCommand({ Bucket }));
    return Boolean(
      block.BlockPublicAcls && block.BlockPublicPolicy && block.IgnorePublicAcls && block.RestrictPublicBuckets,
    );
  });
  await want('TLS-only policy', async () =>
    /aws:SecureTransport/.test((await s3.send(new GetBucketPolicyCommand({ Bucket }))).Policy ?? ''),
  );
  return gaps;
}

export const NETWORK_PROBES: readonly Probe<ReadWorld>[] = [
  probe('zone-ids', 'a prefix of the zone ids', async (world) => {
    const prefix = zoneIdPrefix(world.region);
    if (!prefix) return unknown(`the catalog has none for ${world.region}`);
    const ids = (await zonesOf(world)).map(({ ZoneId = '' }) => ZoneId);
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
    const zones = (await zonesOf(world)).map(({ ZoneName = '' }) => ZoneName);
    const lacking = ServiceDetails.flatMap(({ ServiceName, AvailabilityZones = [] }) =>
      zones.filter((zone) => !AvailabilityZones.includes(zone)).map((zone) => `${ServiceName} is not in ${zone}`),
    );
    return noneOf(lacking, `${names.length} services in ${zones.length} zones`);
  }),
  probe('self-rules', 'one security group that allows all traffic from and to itself', async (world) => {
    const groups = world.descriptor?.securityGroupIds ?? [];
    if (groups.length === 0) return unknown('the environment has no security group');
    const { SecurityGroups = [] } = await world.ec2.send(new DescribeSecurityGroupsCommand({ GroupIds: groups }));
    const good = selfReachingGroups(SecurityGroups);
    return holdsIf(good.length > 0, good.length > 0 ? `${good.length} of ${groups.length} groups` : 'none');
  }),
  probe(
    'buckets-guarded',
    'three buckets with KMS encryption, versioning, public access block and TLS-only policy',
    async (world) => {
      const { descriptor } = world;
      if (!descriptor) return unknown('the environment is not deployed');
      const gaps: string[] = [];
      for (const kind of ['data', 'checkpoint', 'artifact'] as const)
        gaps.push(...(await gapsOf(world, descriptor[`${kind}Bucket`], kind)));
      return noneOf(gaps, 'all three buckets comply');
    },
  ),
];
