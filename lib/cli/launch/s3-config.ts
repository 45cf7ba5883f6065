import { GetObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { fillPlaceholders } from '../../core/config/formats/places';
import { namedConfig } from '../../core/config/inline-config';
import { loadRun } from '../../core/config/load';
import { calling } from '../aws-errors';
import { findDescriptor, usualEnvironment } from '../environment/environment';
import type { CommonOptions, GivenFile } from '../inputs';

/**
 * Adds the text of a `model.config` in S3 to the options, read with the caller's own permissions. Without an environment it is not read,
 * and a rule rejects the run file.
 */
export async function withS3Config<T extends CommonOptions>({ text }: GivenFile, options: T): Promise<T> {
  const uri = namedConfig(text, options.set);
  if (!uri?.startsWith('s3://')) return options;
  const environment = options.environment ?? loadRun(text, options.set).value?.environment ?? usualEnvironment();
  if (!environment) return options;
  const descriptor = await findDescriptor(options, environment);
  const [, Bucket = '', Key = ''] =
    /^s3:\/\/([^/]+)\/(.+)$/.exec(fillPlaceholders(uri, { descriptor, runId: '' })) ?? [];
  const config = await calling(`reading model.config ${uri}`, async () => {
    const { Body } = await new S3Client({ region: descriptor.region }).send(new GetObjectCommand({ Bucket, Key }));
    return (await Body?.transformToString()) ?? '';
  });
  return { ...options, modelConfig: { uri, text: config } };
}
