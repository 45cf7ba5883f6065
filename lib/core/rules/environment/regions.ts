import { nearest } from '../../catalog/nearest';
import { REGIONS } from '../../catalog/regions';
import { type EnvironmentSpec, resolveEnvironments } from '../../config/environment-file';
import { orList } from '../../config/issue';
import { when } from '../../config/rule';
import { type EnvironmentRule, environmentRule } from './environment-rule';

function regionalIds({ network, storage }: EnvironmentSpec): { path: string; id: string }[] {
  const vpcId = network.mode === 'existing' ? network.existing?.vpcId : undefined;
  const systems = Object.entries(storage.fileSystems ?? {});
  return [
    ...(vpcId ? [{ path: 'network.existing.vpcId', id: vpcId }] : []),
    ...systems.map(([name, { fsxLustre, efs }]) => ({
      path: `storage.fileSystems.${name}`,
      id: fsxLustre ?? efs ?? '',
    })),
    ...Object.entries(storage.buckets ?? {}).map(([purpose, id]) => ({ path: `storage.buckets.${purpose}`, id })),
    ...(storage.kmsKeyArn ? [{ path: 'storage.kmsKeyArn', id: storage.kmsKeyArn }] : []),
  ];
}

/** Rules for regions and the runs that are registered in them. */
export const REGION_RULES: readonly EnvironmentRule[] = [
  environmentRule('environment/region', 'error', [], ({ region }) =>
    when(!Object.hasOwn(REGIONS, region), `regions.${region}`, {
      must: 'must be a region with SageMaker images',
      got: region,
      fix: `use ${orList(nearest(region, Object.keys(REGIONS)))}`,
    }),
  ),
  environmentRule('environment/partition', 'error', ['regions'], (_, { regions }) => {
    const partitions = new Set(Object.keys(regions).flatMap((region) => REGIONS[region]?.partition ?? []));
    return when(partitions.size > 1, 'regions', {
      must: 'must be in one partition',
      got: [...partitions].join(', '),
      fix: 'write an environment file for each of them',
    });
  }),
  environmentRule('environment/region-ids', 'error', ['regions', 'network', 'storage'], (spec, file) => {
    const elsewhere = resolveEnvironments(file).filter(({ region }) => region !== spec.region);
    const taken = new Set(elsewhere.flatMap(regionalIds).map(({ id }) => id));
    return regionalIds(spec)
      .filter(({ id }) => taken.has(id))
      .map(({ path, id }) => ({
        path,
        must: 'must be set for one region only',
        got: id,
        fix: `set it under regions.<region>, for each of ${Object.keys(file.regions).join(', ')}`,
      }));
  }),
  environmentRule('environment/runs', 'error', ['regions', 'runs'], (_, { regions, runs: named = [] }) =>
    named.flatMap(({ region }, i) =>
      when(region !== undefined && !Object.hasOwn(regions, region), `runs[${i}].region`, {
        must: "must be one of the environment's regions",
        fix: `write region: ${orList(Object.keys(regions))}`,
      }),
    ),
  ),
];
