import { GetParameterCommand, SSMClient } from '@aws-sdk/client-ssm';
import type { Descriptor } from '../../core/config/descriptor';
import { orList } from '../../core/config/issue';
import { loadDescriptor } from '../../core/config/load';
import { descriptorParameter, teamsParameter } from '../../core/contracts/launcher';
import { answerOrUndefined } from '../../shared/aws/answers';
import { awsClient } from '../aws-client';
import { isDenied, serviceError } from '../aws-errors';
import { regionGiven } from '../command-line';
import { type ServiceError, UsageError } from '../exit';
import { type CommonOptions, isDescriptorFile, readDescriptor } from '../inputs';

/** The region for service calls: the option, otherwise that of the SDKs' variables, otherwise that of the AWS profile. */
export async function callRegion(options: CommonOptions): Promise<string> {
  const named = options.region || process.env.AWS_REGION || process.env.AWS_DEFAULT_REGION;
  const region =
    named ||
    (await awsClient(SSMClient, {})
      .config.region()
      .catch(() => undefined));
  if (!region) throw new UsageError('--region: must be given, got nothing; name a region, or set AWS_REGION');
  return regionGiven(region);
}

/** The default environment, `SLIPWAY_ENVIRONMENT`; undefined when it is not set or empty. */
export const usualEnvironment = (): string | undefined => process.env.SLIPWAY_ENVIRONMENT || undefined;

/**
 * The descriptor for `--environment`: a file, `name/team`, or a name if the caller can read the descriptor of exactly one team.
 * @param fallback the environment of the run file, which takes precedence over `SLIPWAY_ENVIRONMENT`
 */
export async function findDescriptor(options: CommonOptions, fallback?: string): Promise<Descriptor> {
  const wanted = options.environment ?? fallback ?? usualEnvironment();
  if (!wanted)
    throw new UsageError(
      '--environment: must be given, got nothing; name an environment, set environment: in the run file, or SLIPWAY_ENVIRONMENT',
    );
  try {
    return await descriptorNamed(wanted, options);
  } catch (error) {
    const { message } = error as Error;
    if (!(error instanceof UsageError) || !message.startsWith(OPTION) || options.environment !== undefined) throw error;
    // The message names the place where the value was written.
    const written = fallback === undefined ? 'SLIPWAY_ENVIRONMENT' : 'environment';
    throw new UsageError(`${written}${message.slice(OPTION.length)}`);
  }
}

const OPTION = '--environment';

async function descriptorNamed(wanted: string, options: CommonOptions): Promise<Descriptor> {
  if (isDescriptorFile(wanted)) return readDescriptor(wanted);
  const [name = '', team, more] = wanted.split('/');
  if (more !== undefined || name === '')
    throw new UsageError(
      `${OPTION}: must be an environment, an environment and its team, or a descriptor file, got ${wanted}; write for example research, research/nlp or descriptor.json`,
    );
  const region = await callRegion(options);
  return team ? readTeamDescriptor(name, team, region) : onlyDescriptor(name, region);
}

/** The descriptor of one team, by its exact name, which a researcher's role may read. */
async function readTeamDescriptor(name: string, team: string, region: string): Promise<Descriptor> {
  const { value, denied } = await readParameter(descriptorParameter(name, team), `${name}/${team}`, region);
  const found = loadDescriptor(value ?? '').value;
  if (found) return found;
  const { teams } = await teamsOf(name, region);
  // The descriptor of another team is denied whether or not it exists.
  if (teams && !(denied && teams.includes(team)))
    throw new UsageError(
      `--environment: must name a team of environment ${name}, got ${team}; use ${orList(teams.map((known) => `${name}/${known}`))}`,
    );
  throw denied ?? notThere(`${name}/${team}`, region);
}

/** The only descriptor of an environment that the caller can read. */
async function onlyDescriptor(name: string, region: string): Promise<Descriptor> {
  const all = await readDescriptors(name, region, [
    `${OPTION}: must also contain your team, got ${name}, whose teams you are not allowed to list`,
    `write ${name}/TEAM with your team's name`,
  ]);
  if (all.length === 1 && all[0]) return all[0];
  if (all.length > 1)
    throw new UsageError(
      `--environment: must contain one team, got ${name}; use ${orList(all.map(({ team }) => `${name}/${team}`))}`,
    );
  const { teams } = await teamsOf(name, region);
  if (!teams) throw notThere(name, region);
  throw new UsageError(
    `--environment: must be an environment with one of your teams, got ${name} with ${orList(teams)}, none of which you are allowed to read; ask the platform team for access`,
  );
}

/**
 * The descriptors of an environment that the caller may read.
 * @param denied error text and remedy if the caller may not list them
 * @param isWanted which teams to read. @default - all
 */
export async function readDescriptors(
  name: string,
  region: string,
  denied: readonly [string, string] = [
    `${name}: must be an environment whose teams you are allowed to list, got no permission`,
    'ask the platform team for it',
  ],
  isWanted: (team: string) => boolean = () => true,
): Promise<Descriptor[]> {
  const { teams = [], denied: refusal } = await teamsOf(name, region);
  if (refusal) throw new UsageError(denied.join('; '));
  const read = (team: string) => readParameter(descriptorParameter(name, team), `${name}/${team}`, region);
  const found = await Promise.all(teams.filter(isWanted).map(read));
  return found.flatMap(({ value = '' }) => loadDescriptor(value).value ?? []);
}

/** Names of the teams; none when the environment does not exist or may not be read. */
async function teamsOf(name: string, region: string): Promise<{ teams?: string[]; denied?: ServiceError }> {
  const { value, denied } = await readParameter(teamsParameter(name), name, region);
  return { teams: value?.split(',').sort(), denied };
}

/** The value of a parameter; none when it does not exist, or when the caller may not read it. */
async function readParameter(
  Name: string,
  wanted: string,
  region: string,
): Promise<{ value?: string; denied?: ServiceError }> {
  const read = awsClient(SSMClient, { region }).send(new GetParameterCommand({ Name }));
  try {
    return { value: (await answerOrUndefined(read, 'ParameterNotFound'))?.Parameter?.Value };
  } catch (error) {
    const denied = readingError(wanted, region, error);
    if (isDenied(error)) return { denied };
    throw denied;
  }
}

const readingError = (wanted: string, region: string, error: unknown): ServiceError =>
  serviceError(`reading environment ${wanted} in ${region}`, error);

const notThere = (wanted: string, region: string) =>
  new UsageError(
    `--environment: must be an environment of ${region}, got ${wanted}; deploy it first, or name another region`,
  );
