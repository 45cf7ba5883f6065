import type { Channel } from '@aws-sdk/client-sagemaker';
import type { Cluster } from '../cluster';

/** `input/config/resourceconfig.json` of one instance. */
export function resourceConfig(cluster: Cluster, host: string): object {
  const own = cluster.instances.find((instance) => instance.host === host);
  return {
    current_host: host,
    current_instance_type: own?.instanceType,
    current_group_name: own?.group,
    // The service sorts hosts as strings: algo-1, algo-10, algo-2.
    hosts: cluster.instances.map((instance) => instance.host).sort(),
    instance_groups: cluster.groups.map((group) => ({
      instance_group_name: group.name,
      instance_type: group.instanceType,
      hosts: [...group.hosts].sort(),
    })),
    // The only network interface that a process group on this machine has.
    network_interface_name: 'lo',
  };
}

/** `input/config/inputdataconfig.json`. */
export function inputDataConfig(channels: readonly Channel[], jobInputMode: string): object {
  return Object.fromEntries(
    channels.map((channel) => [
      channel.ChannelName,
      {
        ContentType: channel.ContentType,
        TrainingInputMode: channel.InputMode ?? jobInputMode,
        S3DistributionType: channel.DataSource?.S3DataSource?.S3DataDistributionType ?? 'FullyReplicated',
        RecordWrapperType: channel.RecordWrapperType ?? 'None',
      },
    ]),
  );
}

/** The sandbox's own `input/config/hosts`: lines `address name`, which are read before any DNS look-up. */
export function hostsFile(addresses: ReadonlyMap<string, string>): string {
  return [...addresses].map(([host, address]) => `${address} ${host}\n`).join('');
}
