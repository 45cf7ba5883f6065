import { namedConfig } from '../../core/config/inline-config';
import { findDescriptor } from '../environment/environment';
import { UsageError } from '../exit';
import { environmentFor, readS3Text, withFetched } from '../hub/fetched';
import type { CommonOptions, GivenFile } from '../inputs';

/**
 * Adds what a run file names in S3 to the options, read with the caller's own permissions: fetched commits of a hub, and the text of a
 * `model.config`. Without an environment nothing is read, and a rule rejects the run file.
 */
export async function withS3Config<T extends CommonOptions>(source: GivenFile, given: T): Promise<T> {
  const options = await withFetched(source, given);
  const uri = namedConfig(source.text, options.set);
  if (!uri?.startsWith('s3://')) return options;
  const environment = environmentFor(source, options);
  if (!environment) return options;
  const text = await readS3Text(uri, await findDescriptor(options, environment));
  if (text === undefined)
    throw new UsageError(`model.config: must be an object in S3, got none at ${uri}; correct the name`);
  return { ...options, modelConfig: { uri, text } };
}
