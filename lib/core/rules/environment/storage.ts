import { REGIONS } from '../../catalog/regions';
import { teamKeysOf } from '../../config/descriptor';
import type { EnvironmentSpec } from '../../config/environment-file';
import { orList } from '../../config/issue';
import { UNSHOWN, when } from '../../config/rule';
import { accountOf, type EnvironmentFinding, type EnvironmentRule, environmentRule } from './environment-rule';

/** Throughput per TiB that FSx for Lustre offers for PERSISTENT_2: https://docs.aws.amazon.com/fsx/latest/LustreGuide/performance.html */
const FSX_THROUGHPUT = [125, 250, 500, 1000];

const NEEDS_VPC = { must: 'must be in a VPC', got: 'network.mode none', fix: 'use network.mode vpc-locked' };

function madeFileSystem({ storage: { fsxLustre: fsx }, network }: EnvironmentSpec): EnvironmentFinding[] {
  if (!fsx) return [];
  const { sizeGiB, throughputMBpsPerTiB: throughput } = fsx;
  const isUnknown = throughput !== undefined && !FSX_THROUGHPUT.includes(throughput);
  return [
    ...when(network.mode === 'none', 'storage.fsxLustre', { ...NEEDS_VPC }),
    ...when(sizeGiB !== 1200 && sizeGiB % 2400 !== 0, 'storage.fsxLustre.sizeGiB', {
      must: 'must be 1200 or a multiple of 2400',
      fix: `use ${Math.max(1, Math.ceil(sizeGiB / 2400)) * 2400}`,
    }),
    ...when(isUnknown, 'storage.fsxLustre.throughputMBpsPerTiB', {
      must: `must be ${orList(FSX_THROUGHPUT)}`,
      fix: 'use one of them',
    }),
  ];
}

function namedFileSystems({ storage, network }: EnvironmentSpec): EnvironmentFinding[] {
  const named = Object.entries(storage.fileSystems ?? {});
  return [
    ...named.flatMap(([name, { fsxLustre, efs }]) =>
      when((fsxLustre === undefined) === (efs === undefined), `storage.fileSystems.${name}`, {
        must: 'must set exactly one of fsxLustre and efs',
        got: UNSHOWN,
        fix: 'keep one',
      }),
    ),
    ...when(storage.fsxLustre !== undefined && named.some(([name]) => name === 'fsx'), 'storage.fileSystems.fsx', {
      must: 'must have another name: fsx is the file system of storage.fsxLustre',
      got: 'fsx',
      fix: 'rename it',
    }),
    ...when(named.length > 0 && network.mode === 'none', 'storage.fileSystems', {
      ...NEEDS_VPC,
      isIgnored: true,
    }),
  ];
}

const ofTeams = (teams: Parameters<typeof teamKeysOf>[0]): string[][] =>
  Object.entries(teamKeysOf(teams)).map(([team, key]) => [`teams.${team}.kmsKey`, key]);

/** Rules for buckets, keys and file systems. */
export const ENVIRONMENT_STORAGE_RULES: readonly EnvironmentRule[] = [
  environmentRule('environment/file-system', 'error', ['storage', 'network'], (spec) => [
    ...madeFileSystem(spec),
    ...namedFileSystems(spec),
  ]),
  /** A file system is in one zone: the subnet of that zone is only known if zones are given by id. */
  environmentRule('environment/support', 'error', ['storage', 'network'], ({ network, storage }) => {
    const { mode, availabilityZoneIds: zones } = network;
    const { fsxLustre } = storage;
    const isOurs = mode.startsWith('vpc-');
    const isNamed = isOurs && zones !== 'all' && fsxLustre !== undefined && zones.includes(fsxLustre.zoneId);
    return when(fsxLustre !== undefined && !isNamed, 'storage.fsxLustre.zoneId', {
      must: isOurs
        ? 'must be one of network.availabilityZoneIds'
        : `must be in a network that the stack creates, unlike mode ${mode}`,
      fix: isOurs
        ? `write network: { availabilityZoneIds: [${fsxLustre?.zoneId}, ...] }`
        : 'use mode: vpc-locked, or name an existing file system under storage.fileSystems',
    });
  }),
  environmentRule('environment/external', 'error', ['storage'], ({ region, storage: { external: places = [] } }) =>
    places.flatMap(({ s3, kmsKeyArn = '' }, i) => {
      const [, partition, , keyRegion] = kmsKeyArn.split(':');
      const own = REGIONS[region]?.partition;
      const isForeign = partition !== undefined && own !== undefined && partition !== own;
      return [
        ...when(places.findIndex((other) => other.s3 === s3) !== i, `storage.external[${i}].s3`, {
          must: 'must be listed once',
          fix: 'keep one entry, with the wider access',
        }),
        ...when(isForeign, `storage.external[${i}].kmsKeyArn`, {
          must: `must be a key in partition ${own} of ${region}`,
          fix: 'use a key in that partition',
        }),
        ...when(!isForeign && keyRegion !== undefined && keyRegion !== region, `storage.external[${i}].kmsKeyArn`, {
          level: 'warning',
          must: `must be a key in ${region}: jobs read buckets in their region`,
          fix: `set the locations of each region under regions.<region>.storage`,
        }),
      ];
    }),
  ),
  environmentRule('environment/buckets', 'error', ['name', 'regions', 'storage'], ({ name, region, storage }) => {
    const { data, checkpoints } = storage.buckets ?? {};
    const made = new RegExp(`^slipway-${name}-\\d{12}-${region}-(artifacts|access-logs)$`);
    const named = Object.entries({ data, checkpoints });
    return [
      ...when(data !== undefined && data === checkpoints, 'storage.buckets.checkpoints', {
        must: 'must not be the bucket of storage.buckets.data',
        fix: 'use another one, or remove it',
      }),
      ...named.flatMap(([purpose, bucket]) =>
        when(bucket !== undefined && made.test(bucket), `storage.buckets.${purpose}`, {
          must: 'must not be a bucket that the stack creates for another purpose',
          fix: 'use another bucket',
        }),
      ),
    ];
  }),
  environmentRule('environment/key', 'error', ['account', 'accounts', 'storage', 'regions', 'teams'], (spec) => {
    const { region, teams, storage } = spec;
    const account = accountOf(spec);
    const keys = [['storage.kmsKeyArn', storage.kmsKeyArn ?? 'own'], ...ofTeams(teams)];
    return keys.flatMap(([path = '', got = '']) => {
      const [, , , keyRegion, keyAccount] = got.split(':');
      return [
        ...when(keyRegion !== undefined && keyRegion !== region, path, {
          must: `must be a key in ${region}`,
          fix: `use a key in ${region}`,
        }),
        ...when(account !== undefined && keyAccount !== undefined && keyAccount !== account, path, {
          must: `must be a key in account ${account}`,
          fix: 'use a key in that account; keys of other accounts can be listed under storage.external',
        }),
      ];
    });
  }),
  environmentRule('environment/team-key', 'error', ['storage', 'teams'], ({ teams, storage: { adopt } }) =>
    ofTeams(teams).flatMap(([path = '', got]) =>
      when(adopt && got === 'own', path, {
        must: 'must be the ARN of an existing key while storage.adopt is true',
        fix: 'use the key that the earlier stack created: it has the tags slipway:environment and slipway:team',
      }),
    ),
  ),
];
