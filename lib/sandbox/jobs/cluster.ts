import type { InstanceGroup, ResourceConfig } from '@aws-sdk/client-sagemaker';

export type Cluster = ReturnType<typeof clusterOf>;

/** One cluster that satisfies a request, and the types that need capacity, with their counts. */
export type ClusterOption = ReturnType<typeof option>;

interface Group {
  name: string;
  instanceType: string;
  count: number;
}

/** Name that the service gives the only group of a job without instance groups. */
const SINGLE_GROUP = 'homogeneousCluster';

/** The instances of groups in the order of the request, numbered consecutively. */
export function clusterOf(groups: readonly Group[]) {
  const unnamed = groups.flatMap(({ name, instanceType, count }) =>
    Array.from({ length: count }, () => ({ instanceType, group: name })),
  );
  const instances = unnamed.map((instance, index) => ({ host: `algo-${index + 1}`, ...instance }));
  return {
    instances,
    groups: groups.map(({ name, instanceType }) => ({
      name,
      instanceType,
      hosts: instances.filter((i) => i.group === name).map((i) => i.host),
    })),
    instanceType: groups.length === 1 ? groups[0]?.instanceType : undefined,
    instanceCount: instances.length,
  };
}

/** The instances that a training or a processing job asks for. */
type InstanceRequest = Pick<
  ResourceConfig,
  'InstanceType' | 'InstanceCount' | 'InstanceGroups' | 'InstancePreferences'
>;

/** The clusters that a request accepts, in the order in which the service tries them. */
export function clusterOptions(config: InstanceRequest): ClusterOption[] {
  if (config.InstancePreferences?.length) {
    return config.InstancePreferences.map((preference) =>
      option([single(preference.InstanceType, preference.InstanceCount ?? config.InstanceCount)]),
    );
  }
  if (config.InstanceGroups?.length) return [option(config.InstanceGroups.map(groupOf))];
  return [option([single(config.InstanceType, config.InstanceCount)])];
}

const single = (instanceType: string | undefined, count: number | undefined) => ({
  name: SINGLE_GROUP,
  instanceType: instanceType ?? '',
  count: count ?? 1,
});

const groupOf = (group: InstanceGroup) => ({
  name: group.InstanceGroupName ?? '',
  instanceType: group.InstanceType ?? '',
  count: group.InstanceCount ?? 0,
});

function option(groups: readonly Group[]) {
  const counts = new Map<string, number>();
  for (const { instanceType, count } of groups) counts.set(instanceType, (counts.get(instanceType) ?? 0) + count);
  return {
    cluster: clusterOf(groups),
    demands: [...counts].map(([instanceType, count]) => ({ instanceType, count })),
  };
}
