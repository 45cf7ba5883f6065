import { REGIONS } from '../../catalog/regions';
import type { EnvironmentSpec } from '../../spec/environment-file';
import { orList } from '../../spec/issue';
import { when } from '../../spec/rule';
import type { EnvironmentFinding, EnvironmentRule } from './environment-rule';

/** Throughput per TiB that FSx for Lustre sells on PERSISTENT_2: https://docs.aws.amazon.com/fsx/latest/LustreGuide/performance.html */
const FSX_THROUGHPUT = [125, 250, 500, 1000];

const fileSystem: EnvironmentRule = {
  id: 'environment/file-system',
  level: 'error',
  what: 'File systems have a size that is sold, a kind, a name of their own, and a network to be reached through.',
  why: 'FSx refuses the size in the middle of a deploy; jobs without a VPC reach no file system.',
  source: 'https://docs.aws.amazon.com/fsx/latest/LustreGuide/managing-storage-capacity.html',
  reads: ['storage', 'network'],
  check: (spec) => [...madeFileSystem(spec), ...namedFileSystems(spec)],
};

const NEEDS_VPC = { must: 'must be in a VPC', got: 'network.mode none', fix: 'use network.mode vpc-locked' };

function madeFileSystem({ storage: { fsxLustre: fsx }, network }: EnvironmentSpec): EnvironmentFinding[] {
  if (!fsx) return [];
  const { sizeGiB, throughputMBpsPerTiB: throughput } = fsx;
  return [
    ...when(network.mode === 'none', { path: 'storage.fsxLustre', ...NEEDS_VPC }),
    ...when(sizeGiB !== 1200 && sizeGiB % 2400 !== 0, {
      path: 'storage.fsxLustre.sizeGiB',
      must: 'must be 1200 or a multiple of 2400',
      got: sizeGiB,
      fix: `use ${Math.max(1, Math.ceil(sizeGiB / 2400)) * 2400}`,
    }),
    ...when(throughput !== undefined && !FSX_THROUGHPUT.includes(throughput), {
      path: 'storage.fsxLustre.throughputMBpsPerTiB',
      must: `must be ${orList(FSX_THROUGHPUT)}`,
      got: throughput,
      fix: 'use one of them',
    }),
  ];
}

function namedFileSystems({ storage, network }: EnvironmentSpec): EnvironmentFinding[] {
  const named = Object.entries(storage.fileSystems ?? {});
  return [
    ...named.flatMap(([name, { fsxLustre, efs }]) =>
      when((fsxLustre === undefined) === (efs === undefined), {
        path: `storage.fileSystems.${name}`,
        must: 'must name exactly one of fsxLustre and efs',
        fix: 'keep one',
      }),
    ),
    ...when(storage.fsxLustre !== undefined && named.some(([name]) => name === 'fsx'), {
      path: 'storage.fileSystems.fsx',
      must: 'must have another name: fsx is the file system of storage.fsxLustre',
      got: 'fsx',
      fix: 'rename it',
    }),
    ...when(named.length > 0 && network.mode === 'none', { path: 'storage.fileSystems', ...NEEDS_VPC, inVain: true }),
  ];
}

/** A file system lies in one zone: the subnet of that zone is only known when zones are given by id. */
const zone: EnvironmentRule = {
  id: 'environment/support',
  level: 'error',
  what: 'The file system that the stack makes lies in a zone that the network names.',
  why: 'The subnet of a zone is only known when zones are given by id.',
  source: 'lib/constructs/network/environment-network.ts',
  reads: ['storage', 'network'],
  check: ({ network: { mode, availabilityZoneIds: zones }, storage: { fsxLustre } }) => {
    const isOurs = mode.startsWith('vpc-');
    const isNamed = isOurs && zones !== 'all' && fsxLustre !== undefined && zones.includes(fsxLustre.zoneId);
    return when(fsxLustre !== undefined && !isNamed, {
      path: 'storage.fsxLustre.zoneId',
      must: isOurs
        ? 'must be one of network.availabilityZoneIds'
        : `must lie in a network that the stack makes, which mode ${mode} does not`,
      got: fsxLustre?.zoneId,
      fix: isOurs
        ? `write network: { availabilityZoneIds: [${fsxLustre?.zoneId}, ...] }`
        : 'use mode: vpc-locked, or name an existing file system under storage.fileSystems',
    });
  },
};

const external: EnvironmentRule = {
  id: 'environment/external',
  level: 'error',
  what: "External places are named once, with keys of the region's partition, best of the region itself.",
  why: 'Two entries of one place would differ in what they allow; jobs read buckets of their own region.',
  source: 'https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_S3DataSource.html',
  reads: ['storage'],
  check: ({ region, storage: { external: places = [] } }) =>
    places.flatMap(({ s3, kmsKeyArn = '' }, i) => {
      const [, partition, , keyRegion] = kmsKeyArn.split(':');
      const own = REGIONS[region]?.partition;
      const isForeign = partition !== undefined && own !== undefined && partition !== own;
      return [
        ...when(places.findIndex((other) => other.s3 === s3) !== i, {
          path: `storage.external[${i}].s3`,
          must: 'must be named once',
          got: s3,
          fix: 'keep one entry, with the wider access',
        }),
        ...when(isForeign, {
          path: `storage.external[${i}].kmsKeyArn`,
          must: `must be a key of partition ${own}, as ${region} is`,
          got: kmsKeyArn,
          fix: 'name a key of that partition',
        }),
        ...when(!isForeign && keyRegion !== undefined && keyRegion !== region, {
          path: `storage.external[${i}].kmsKeyArn`,
          level: 'warning',
          must: `must be a key of ${region}: jobs read buckets of their own region`,
          got: kmsKeyArn,
          fix: `write each region's places below regions.<region>.storage`,
        }),
      ];
    }),
};

export const ENVIRONMENT_STORAGE_RULES: readonly EnvironmentRule[] = [fileSystem, zone, external];
