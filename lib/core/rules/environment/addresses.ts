import { addressText, blockOf, DEFAULT_VPC_CIDR, overlaps, VPC_PREFIX_LENGTHS } from '../../catalog/subnet-plan';
import type { EnvironmentSpec } from '../../config/environment-file';
import { orList } from '../../config/issue';
import { when } from '../../config/rule';
import { type EnvironmentFinding, type EnvironmentRule, environmentRule } from './environment-rule';
import { notCreated } from './network';

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

/** The nearest prefix length that a VPC may have. */
function vpcPrefixLength(prefixLength: number): number {
  const [largest, smallest] = VPC_PREFIX_LENGTHS;
  return Math.min(Math.max(prefixLength, largest), smallest);
}

/** Rules for the address range of an environment's own network. */
export const ADDRESS_RULES: readonly EnvironmentRule[] = [
  environmentRule('environment/address-block', 'error', ['network'], (spec) =>
    spec.network.mode.startsWith('vpc-')
      ? [...shape(spec), ...neighbours(spec)]
      : [
          ...notCreated(spec.network, 'cidr', spec.network.cidr !== DEFAULT_VPC_CIDR),
          ...notCreated(spec.network, 'reserved', spec.network.reserved.length > 0),
        ],
  ),
];
