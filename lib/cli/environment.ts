import { GetParametersByPathCommand, SSMClient } from '@aws-sdk/client-ssm';
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
  const all = await readDescriptors(name, callRegion(options));
  const found = team ? all.filter((d) => d.team === team) : all;
  if (found.length === 1 && found[0]) return found[0];
  const teams = all.map((d) => `${name}/${d.team}`).join(', ');
  if (all.length === 0) {
    throw new UsageError(
      `--environment: must be an environment of ${callRegion(options)}, got ${wanted}; deploy it first, or name another region`,
    );
  }
  throw new UsageError(`--environment: must name one team, got ${wanted}; use ${teams}`);
}

/** The descriptors of an environment that the caller may read. */
export async function readDescriptors(name: string, region: string): Promise<Descriptor[]> {
  const ssm = new SSMClient({ region });
  const answer = await calling(`reading environment ${name} in ${region}`, () =>
    ssm.send(new GetParametersByPathCommand({ Path: `${ROOT}/${name}/` })),
  );
  return (answer.Parameters ?? []).flatMap((p) => loadDescriptor(p.Value ?? '').value ?? []);
}
