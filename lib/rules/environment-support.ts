import { type EnvironmentFile, type EnvironmentSpec, resolveEnvironments } from '../spec/environment-file';
import { type Issue, issue } from '../spec/issue';

/** What an environment file asks for and this release does not make. Each finding once, whatever the number of regions. */
export function checkEnvironmentSupport(file: EnvironmentFile): Issue[] {
  const found = resolveEnvironments(file).flatMap((spec) => [...lustre(spec), ...image(spec)]);
  return found.filter((a, i) => found.findIndex((b) => b.message === a.message) === i);
}

/** A file system lies in one zone: the subnet of that zone is only known when zones are given by id. */
function lustre({ network: { mode, availabilityZoneIds: zones }, storage: { fsxLustre } }: EnvironmentSpec): Issue[] {
  if (!fsxLustre || (zones !== 'all' && zones.includes(fsxLustre.zoneId) && mode.startsWith('vpc-'))) return [];
  const isOurs = mode.startsWith('vpc-');
  return [
    issue('environment/support', 'error', 'storage.fsxLustre.zoneId', {
      must: isOurs
        ? 'must be one of network.availabilityZoneIds'
        : `must lie in a network that the stack makes, which mode ${mode} does not`,
      got: fsxLustre.zoneId,
      fix: isOurs
        ? `write network: { availabilityZoneIds: [${fsxLustre.zoneId}, ...] }`
        : 'use mode: vpc-locked, or name an existing file system under storage.fileSystems',
    }),
  ];
}

function image({ image: { build, uri } }: EnvironmentSpec): Issue[] {
  if (uri || build) return [];
  return [
    issue('environment/support', 'error', 'image.build', {
      must: 'must be true without image.uri',
      got: build,
      fix: 'remove it, or name an image with image.uri',
    }),
  ];
}
