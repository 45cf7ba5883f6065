import { MAX_PLANNED_ZONES, zoneIdPrefix, zonePosition } from '../../catalog/subnet-plan';
import type { EnvironmentSpec } from '../../config/environment-file';
import { when } from '../../config/rule';
import { type EnvironmentRule, environmentRule } from './environment-rule';

type Network = EnvironmentSpec['network'];

/** Finding for an option that has an effect only with another value of `setting`. */
const unused = (network: Network, option: keyof Network, setting: 'mode' | 'packages', needed: string) =>
  when(network[setting] !== needed && network[option] !== undefined, `network.${option}`, {
    must: `must be used with ${setting} ${needed}, not ${network[setting]}`,
    fix: `set ${setting}: ${needed}, or remove it`,
    isIgnored: true,
  });

/** Finding for an option of a network that the stack creates, in an environment with another one. */
export const notCreated = ({ mode }: Network, option: keyof Network, isGiven: boolean) =>
  when(!mode.startsWith('vpc-') && isGiven, `network.${option}`, {
    must: `must be used with a network that the stack creates, unlike mode ${mode}`,
    fix: 'use mode: vpc-locked or vpc-nat, or remove it',
    isIgnored: true,
  });

/** Rules for the network of an environment. */
export const ENVIRONMENT_NETWORK_RULES: readonly EnvironmentRule[] = [
  environmentRule(
    'environment/network',
    'error',
    ['network'],
    ({ network: { mode, existing, packages, wheels, codeArtifact } }) => [
      ...when(mode === 'existing' && !existing, 'network.existing', {
        must: 'must be set with mode existing',
        fix: 'add vpcId, subnetIds and securityGroupIds',
      }),
      ...when(packages === 'wheels' && !wheels, 'network.wheels', {
        must: 'must be set with packages wheels',
        fix: 'add wheels: s3://bucket/prefix/',
      }),
      ...when(packages === 'codeartifact' && !codeArtifact, 'network.codeArtifact', {
        must: 'must be set with packages codeartifact',
        fix: 'add codeArtifact: { domain, repository }',
      }),
    ],
  ),
  environmentRule('environment/network-unused', 'error', ['network'], ({ network }) => [
    ...unused(network, 'existing', 'mode', 'existing').map((found) => ({ ...found, got: network.existing?.vpcId })),
    ...notCreated(network, 'availabilityZoneIds', network.availabilityZoneIds !== 'all'),
    ...unused(network, 'endpoints', 'mode', 'vpc-locked'),
    ...unused(network, 'wheels', 'packages', 'wheels'),
    ...unused(network, 'codeArtifact', 'packages', 'codeartifact'),
  ]),
  environmentRule('environment/zones', 'error', ['network'], ({ region, network: { mode, availabilityZoneIds } }) => {
    const prefix = zoneIdPrefix(region);
    if (availabilityZoneIds === 'all' || !prefix || !mode.startsWith('vpc-')) return [];
    return availabilityZoneIds.flatMap((zone, i) =>
      when(!zone.startsWith(`${prefix}-`), `network.availabilityZoneIds[${i}]`, {
        must: `must be a zone of ${region}, such as ${prefix}-az1`,
        fix: `use zones of ${region}; set them under regions.${region}.network if they differ from those of other regions`,
      }),
    );
  }),
  environmentRule('environment/subnet-addresses', 'error', ['network'], ({ network: { availabilityZoneIds: zones } }) =>
    (zones === 'all' ? [] : zones).flatMap((zone, i) =>
      when((zonePosition(zone) ?? 0) >= MAX_PLANNED_ZONES, `network.availabilityZoneIds[${i}]`, {
        must: `must be one of the first ${MAX_PLANNED_ZONES} zones of the region`,
        fix: 'remove it, or use mode: existing with your own network',
      }),
    ),
  ),
];
