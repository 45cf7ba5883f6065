import { existsSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { CloudFormationClient, GetTemplateCommand } from '@aws-sdk/client-cloudformation';
import { isEnvironmentFileName } from '../../core/config/environment/image';
import type { EnvironmentSpec } from '../../core/config/environment-file';
import { orList } from '../../core/config/issue';
import { isEnvironmentFile, isRunFile, loadEnvironment } from '../../core/config/load';
import { QUOTA_PREFLIGHT_TYPE, quotaPreflightSchema } from '../../core/contracts/custom-resources';
import type { TemplateResources } from '../../core/contracts/template-values';
import { environmentQuotaNeeds, type QuotaNeed } from '../../core/quota';
import { namedText } from '../../shared/archive/code-files';
import { type EnvironmentOnDisk, isRefused, readEnvironmentFile } from '../../shared/environment/read-environment-file';
import { awsClient } from '../aws-client';
import { isMissingStack, serviceError } from '../aws-errors';
import { Refusal, UsageError } from '../exit';
import type { CommonOptions } from '../inputs';
import { callRegion } from './environment';

/**
 * Rejects a run file where a verb accepts only an environment file, with one sentence instead of one issue per option.
 * @throws UsageError for a run file
 */
export function refuseRunFile(file: string, text: string): void {
  if (isRunFile(text))
    throw new UsageError(
      `${file}: must be an environment file, got a run file; name one such as environments/research.yaml`,
    );
}

/**
 * Reads an environment file as for a deploy; throws a Refusal for its errors.
 * @throws UsageError for a run file
 */
export function requireEnvironment(file: string, text: string, options: CommonOptions): EnvironmentOnDisk {
  refuseRunFile(file, text);
  const disk = readEnvironmentFile(file, text, options.set);
  if (isRefused(disk)) throw new Refusal(disk.issues);
  return disk;
}

/** The environment in the selected region: the only one of the file, or the one of `callRegion`. */
export async function environmentIn({ specs }: EnvironmentOnDisk, file: string, options: CommonOptions) {
  const [only, ...others] = specs;
  const region = options.region ?? (others.length === 0 ? only?.region : undefined) ?? (await callRegion(options));
  const found = specs.find((spec) => spec.region === region);
  if (found) return found;
  const regions = specs.map((spec) => spec.region);
  throw new UsageError(`--region: must be a region of ${file}, got ${region}; use ${orList(regions)}`);
}

/** Needs that the deploy of an environment in one region compares with the account's quotas: its own and those of its runs. */
export function needsOfEnvironment({ runs }: EnvironmentOnDisk, { quotas, guardrails }: EnvironmentSpec): QuotaNeed[] {
  const registered = runs.map(({ run }) => run);
  return environmentQuotaNeeds(quotas.require, registered, guardrails.maxInstancesPerRun);
}

const NAME = /^[a-z][a-z0-9-]{0,30}$/;

/** The file `environments/*.yaml` below this folder that defines the environment with this name; undefined when there is none. */
export function environmentFileOf(name: string, folder = process.cwd()): string | undefined {
  return NAME.test(name) ? environmentFiles(folder).find((file) => nameIn(file) === name) : undefined;
}

/** The environment files in `environments/` of a folder. */
export function environmentFiles(folder = '.'): string[] {
  const environments = path.join(folder, 'environments');
  if (!existsSync(environments)) return [];
  return readdirSync(environments)
    .filter(isEnvironmentFileName)
    .map((file) => path.join(environments, file));
}

function nameIn(file: string): string | undefined {
  const text = namedText(file, path.basename(file)) ?? '';
  return isEnvironmentFile(text) ? loadEnvironment(text).value?.name : undefined;
}

/** The environment file for an argument: a path, or the name of an environment that has a file; otherwise undefined. */
export const fileMeant = (given: string): string | undefined =>
  !/[/\\.]/.test(given) && !existsSync(given) ? environmentFileOf(given) : given;

/**
 * The same, but a file is required.
 * @throws UsageError
 */
export function requireFile(given: string): string {
  const file = fileMeant(given);
  if (file !== undefined) return file;
  throw new UsageError(
    `${given}: must be a file, or the name of an environment with a file in environments/, got neither; check the name`,
  );
}

/**
 * The needs that the deployed stack of an environment compared with the account's quotas. A stack whose first deploy was refused because of
 * quotas has a template too, until it is deleted.
 */
export async function needsOfStack(name: string, region: string): Promise<QuotaNeed[]> {
  const neither = new UsageError(
    `${name}: must be a file, or the name of an environment with a file in environments/ or a stack in ${region}, got neither; check the name and --region`,
  );
  if (!NAME.test(name)) throw neither;
  const resources = await deployedResources(name, region);
  if (resources === undefined) throw neither;
  const gate = Object.values(resources).find(({ Type }) => Type === QUOTA_PREFLIGHT_TYPE);
  return quotaPreflightSchema.shape.needs.parse(gate?.Properties?.needs ?? '[]');
}

/** The resources in the deployed template of an environment; undefined without a stack. */
async function deployedResources(name: string, region: string): Promise<TemplateResources | undefined> {
  const StackName = `Slipway-${name}-${region}`;
  try {
    const command = new GetTemplateCommand({ StackName, TemplateStage: 'Original' });
    const { TemplateBody } = await awsClient(CloudFormationClient, { region }).send(command);
    return TemplateBody ? ((JSON.parse(TemplateBody) as { Resources?: TemplateResources }).Resources ?? {}) : undefined;
  } catch (error) {
    if (isMissingStack(error)) return undefined;
    throw serviceError(`reading stack ${StackName} in ${region}`, error);
  }
}
