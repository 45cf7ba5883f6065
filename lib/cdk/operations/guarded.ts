import { createHash } from 'node:crypto';
import { Token } from 'aws-cdk-lib';
import { DEFAULT_VPC_CIDR, subnetPlan } from '../../core/catalog/subnet-plan';
import type { EnvironmentSpec } from '../../core/config/environment-file';
import { teamKeysOf } from '../../core/config/team-keys';

/**
 * The properties that the replace guard compares between the deployed template and the next one.
 * @param zoneNames zones of the Region as the CDK looks them up, for `availabilityZoneIds: all`
 */
export function guardedBy(spec: EnvironmentSpec, zoneNames: () => readonly string[]): Record<string, string> {
  const { network, teams, storage, iam } = spec;
  const { mode, existing, availabilityZoneIds: ids } = network;
  const names = Object.keys(teams).sort();
  const teamKeys = teamKeysOf(teams);
  const isMade = mode.startsWith('vpc-');
  const zones = isMade ? (ids === 'all' ? zoneNames().filter((zone) => !Token.isUnresolved(zone)) : ids) : [];
  const moved = isMade ? movedSubnets(spec, zones) : [];
  return {
    fingerprint: hashOf({
      mode,
      existing,
      vpc: isMade && vpcKind(spec),
      // The NAT gateway is in the first zone.
      nat: mode === 'vpc-nat' && subnetPlan(zones, network.subnetOrder)[0]?.zone,
      fileSystem: storage.fsxLustre?.zoneId,
      // Absent at their defaults, so that the fingerprint of an environment without them is the same as in earlier versions.
      cidr: isMade && network.cidr !== DEFAULT_VPC_CIDR ? network.cidr : undefined,
      roles: iam.rolePath || iam.rolePrefix ? [iam.rolePath, iam.rolePrefix] : undefined,
      // Otherwise roles would lose access to the bucket that live runs use.
      buckets: storage.buckets && [storage.buckets.data, storage.buckets.checkpoints],
    }),
    previousFingerprint: hashOf({ mode, existing, zones: ids, teams: names, adopt: storage.adopt }),
    teams: JSON.stringify(names),
    zones: JSON.stringify([...zones].sort()),
    storage: storage.adopt ? 'adopted' : storage.retain ? 'retained' : 'deleted',
    movedSubnets: JSON.stringify(moved),
    repository: spec.image.uri || storage.adopt ? 'none' : spec.image.encryption,
    ...(storage.kmsKeyArn && { keyArn: storage.kmsKeyArn }),
    ...(Object.keys(teamKeys).length > 0 && { teamKeys: JSON.stringify(teamKeys) }),
  };
}

/** Subnets by zone id are in another VPC than those by name, unless they keep the order of version 0.1.0. */
function vpcKind({ network: { availabilityZoneIds: ids, subnetOrder: order } }: EnvironmentSpec): string {
  return (order === undefined ? ids === 'all' : order.length > 0) ? 'first' : 'by-zone';
}

/**
 * Zones in the order of version 0.1.0, if this version assigns other address ranges to their subnets and the file does not say that they
 * may move.
 */
function movedSubnets({ network }: EnvironmentSpec, zones: readonly string[]): readonly string[] {
  if (network.subnetOrder !== undefined) return [];
  if (network.availabilityZoneIds !== 'all') return zones;
  const isInPlace = subnetPlan(zones).every(({ zone, number }) => zones.indexOf(zone) === number - 1);
  return isInPlace && network.mode === 'vpc-locked' ? [] : zones;
}

const hashOf = (value: unknown): string =>
  createHash('sha256').update(JSON.stringify(value)).digest('hex').slice(0, 16);
