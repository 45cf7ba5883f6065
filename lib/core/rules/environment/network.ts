import {
  addressText,
  blockOf,
  DEFAULT_VPC_CIDR,
  MAX_PLANNED_ZONES,
  overlaps,
  VPC_PREFIX_LENGTHS,
  zoneIdPrefix,
  zonePosition,
} from '../../catalog/subnet-plan';
import type { EnvironmentSpec } from '../../config/environment-file';
import { orList } from '../../config/issue';
import { when } from '../../config/rule';
import { type EnvironmentFinding, type EnvironmentRule, environmentRule } from './environment-rule';

type Network = EnvironmentSpec['network'];

/** Finding for an option that has an effect only with another value of `setting`. */
const unused = (network: Network, option: keyof Network, setting: 'mode' | 'packages', needed: string) =>
  when(network[setting] !== needed && network[option] !== undefined, `network.${option}`, {
    must: `must be used with ${setting} ${needed}, not ${network[setting]}`,
    fix: `set ${setting}: ${needed}, or remove it`,
    isIgnored: true,
  });

/** Finding for an option of a network that the stack creates, in an environment with another one. */
const notCreated = ({ mode }: Network, option: keyof Network, isGiven: boolean) =>
  when(!mode.startsWith('vpc-') && isGiven, `network.${option}`, {
    must: `must be used with a network that the stack creates, unlike mode ${mode}`,
    fix: 'use mode: vpc-locked or vpc-nat, or remove it',
    isIgnored: true,
  });

/** Ranges for private networks: RFC 1918, and RFC 6598, which large companies also use. */
const PRIVATE = ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10'] as const;
/** Docker's own network, which SageMaker uses: https://docs.aws.amazon.com/vpc/latest/userguide/vpc-cidr-blocks.html */
const DOCKER = '172.17.0.0/16';

function shape({ network: { cidr } }: EnvironmentSpec): EnvironmentFinding[] {
  const { first, base, prefixLength } = blockOf(cidr);
  const [largest, smallest] = VPC_PREFIX_LENGTHS;
  const fix = `write ${blockText(first, vpcPrefixLength(prefixLength))}`;
  return [
    ...when(prefixLength < largest || prefixLength > smallest, 'network.cidr', {
      must: `must be a block from /${largest} to /${smallest}`,
      fix,
    }),
    ...when(first !== base, 'network.cidr', { must: 'must start with the first address of its block', fix }),
    ...when(!PRIVATE.some((range) => overlaps(range, cidr)), 'network.cidr', {
      must: `must be in a private range: ${orList(PRIVATE)}`,
      fix: `use ${DEFAULT_VPC_CIDR}, or another block in these ranges`,
    }),
  ];
}

function neighbours({ network: { cidr, reserved } }: EnvironmentSpec): EnvironmentFinding[] {
  const taken = [...reserved, DOCKER];
  const met = taken.filter((block) => overlaps(block, cidr));
  if (met.length === 0) return [];
  const fix = freeBlock(cidr, taken);
  return met.map((block) => ({
    path: 'network.cidr',
    must:
      block === DOCKER
        ? `must not overlap ${DOCKER}, which SageMaker uses itself`
        : `must not overlap ${block}, which is reserved`,
    fix,
  }));
}

/** The first free block of 10.0.0.0/8 of the same size, or of the nearest size that a VPC may have. */
function freeBlock(cidr: string, taken: readonly string[]): string {
  const prefixLength = vpcPrefixLength(blockOf(cidr).prefixLength);
  const { base, size } = blockOf(PRIVATE[0]);
  for (let first = base; first < base + size; first += 2 ** (32 - prefixLength)) {
    const block = blockText(first, prefixLength);
    if (!taken.some((other) => overlaps(other, block))) return `use a free block such as ${block}`;
  }
  return 'use a block outside of 10.0.0.0/8';
}

/** The block of this prefix length that contains an address. */
const blockText = (address: number, prefixLength: number): string =>
  `${addressText(blockOf(`${addressText(address)}/${prefixLength}`).base)}/${prefixLength}`;

function vpcPrefixLength(prefixLength: number): number {
  const [largest, smallest] = VPC_PREFIX_LENGTHS;
  return Math.min(Math.max(prefixLength, largest), smallest);
}

export const ENVIRONMENT_NETWORK_RULES: readonly EnvironmentRule[] = [
  environmentRule('environment/network', 'error', ['network'], ({ network }) => {
    const { mode, existing, packages, wheels, codeArtifact } = network;
    return [
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
    ];
  }),
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
  environmentRule('environment/address-block', 'error', ['network'], (spec) =>
    spec.network.mode.startsWith('vpc-')
      ? [...shape(spec), ...neighbours(spec)]
      : [
          ...notCreated(spec.network, 'cidr', spec.network.cidr !== DEFAULT_VPC_CIDR),
          ...notCreated(spec.network, 'reserved', spec.network.reserved.length > 0),
        ],
  ),
];
