import { GetParameterCommand, GetParametersByPathCommand, SSMClient } from '@aws-sdk/client-ssm';
import type { Descriptor } from '../spec/descriptor';
import { loadDescriptor } from '../spec/load';
import { calling } from './aws-errors';
import { UsageError } from './exit';
import { type CommonOptions, isDescriptorFile, readDescriptor } from './inputs';

const ROOT = '/slipway/environments';

/** The region to call: the option, else the usual variables of the SDKs. */
export function callRegion(options: CommonOptions): string {
  const region = options.region ?? process.env.AWS_REGION ?? process.env.AWS_DEFAULT_REGION;
  if (!region) throw new UsageError('--region: must be given, got nothing; name a region, or set AWS_REGION');
  return region;
}

/**
 * The descriptor that `--environment` names: a file, `name/team`, or a name whose only readable team is meant.
 * @param fallback the environment of the run file
 */
export async function findDescriptor(options: CommonOptions, fallback?: string): Promise<Descriptor> {
  const wanted = options.environment ?? fallback;
  if (!wanted)
    throw new UsageError(
      '--environment: must be given, got nothing; name an environment, or set environment: in the run file',
    );
  if (isDescriptorFile(wanted)) return readDescriptor(wanted);
  const [name = '', team] = wanted.split('/');
  const region = callRegion(options);
  return team ? readTeamDescriptor(name, team, region) : onlyDescriptor(name, region);
}

/** The descriptor of one team, by its exact name: what a researcher's role may read. */
async function readTeamDescriptor(name: string, team: string, region: string): Promise<Descriptor> {
  const ssm = new SSMClient({ region });
  const answer = await calling(`reading environment ${name}/${team} in ${region}`, async () => {
    try {
      return await ssm.send(new GetParameterCommand({ Name: `${ROOT}/${name}/${team}` }));
    } catch (error) {
      if ((error as Error).name === 'ParameterNotFound') return undefined;
      throw error;
    }
  });
  const found = loadDescriptor(answer?.Parameter?.Value ?? '').value;
  if (!found) throw notThere(`${name}/${team}`, region);
  return found;
}

/** The only descriptor of an environment that the caller can read. */
async function onlyDescriptor(name: string, region: string): Promise<Descriptor> {
  const all = await readDescriptors(name, region);
  if (all.length === 1 && all[0]) return all[0];
  if (all.length === 0) throw notThere(name, region);
  const teams = all.map((d) => `${name}/${d.team}`).join(', ');
  throw new UsageError(`--environment: must name one team, got ${name}; use ${teams}`);
}

const notThere = (wanted: string, region: string) =>
  new UsageError(
    `--environment: must be an environment of ${region}, got ${wanted}; deploy it first, or name another region`,
  );

/** The descriptors of an environment that the caller may read. */
export async function readDescriptors(name: string, region: string): Promise<Descriptor[]> {
  const ssm = new SSMClient({ region });
  const answer = await calling(`reading environment ${name} in ${region}`, () =>
    ssm.send(new GetParametersByPathCommand({ Path: `${ROOT}/${name}/` })),
  );
  return (answer.Parameters ?? []).flatMap((p) => loadDescriptor(p.Value ?? '').value ?? []);
}
