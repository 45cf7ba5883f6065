import type { Construct } from 'constructs';
import type { EnvironmentSpec } from '../../core/config/environment-file';
import { isDeployed } from '../embedded-aws';
import type { TrainingStorage } from '../storage/training-storage';
import type { EnvironmentNetwork } from './environment-network';
import { LustreFileSystem } from './lustre-file-system';

/** File systems of an environment by the names that run files use, as in its descriptor. */
type FileSystems = Record<string, { id?: string; fsxLustre?: string; efs?: string }>;

/**
 * File systems that the environment names, and the FSx for Lustre file system that it creates. Undefined when there are none: an empty list
 * would forbid all others.
 */
export function environmentFileSystems(
  scope: Construct,
  {
    options,
    network,
    storage,
  }: { options: EnvironmentSpec['storage']; network: EnvironmentNetwork; storage: TrainingStorage },
): FileSystems | undefined {
  const { fsxLustre, fileSystems, retain } = options;
  const subnetId = fsxLustre && network.subnetOfZone(fsxLustre.zoneId);
  if (!fsxLustre || !subnetId || !isDeployed(scope, 'lustre')) return fileSystems;
  const made = new LustreFileSystem(scope, 'Lustre', {
    subnetId,
    securityGroupIds: network.securityGroupIds,
    sizeGiB: fsxLustre.sizeGiB,
    throughputMBpsPerTiB: fsxLustre.throughputMBpsPerTiB,
    key: storage.key,
    dataBucketName: storage.dataBucketName,
    retain,
    network: network.partsIn(fsxLustre.zoneId),
  });
  const own = { id: made.fileSystemId, fsxLustre: made.fileSystemId, directoryPath: `/${made.mountName}` };
  return { fsx: own, ...fileSystems };
}
