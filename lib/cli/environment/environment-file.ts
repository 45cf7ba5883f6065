import type { EnvironmentSpec } from '../../core/config/environment-file';
import { orList } from '../../core/config/issue';
import { isRunFile } from '../../core/config/load';
import { environmentQuotaNeeds, type QuotaNeed } from '../../core/quota';
import { type EnvironmentOnDisk, isRefused, readEnvironmentFile } from '../../shared/environment/read-environment-file';
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
