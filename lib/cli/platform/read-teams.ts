import type { Descriptor } from '../../core/config/descriptor';
import { callRegion, readDescriptors } from '../environment/environment';
import { UsageError } from '../exit';
import type { CommonOptions } from '../inputs';

/**
 * The descriptors of the teams of an environment that the caller may read, or that of `--team` alone.
 * @throws UsageError when there is none
 */
export async function readTeams(
  environment: string,
  options: CommonOptions & { team?: string },
): Promise<{ region: string; descriptors: Descriptor[] }> {
  const region = await callRegion(options);
  const isWanted = (team: string) => options.team === undefined || team === options.team;
  const descriptors = await readDescriptors(environment, region, undefined, isWanted);
  if (descriptors.length > 0) return { region, descriptors };
  throw new UsageError(
    `${environment}: must be an environment of ${region}${options.team ? ` with team ${options.team}` : ''} that you may read, got none; check name, region and team`,
  );
}
