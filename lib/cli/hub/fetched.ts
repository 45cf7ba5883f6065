import { S3Client } from '@aws-sdk/client-s3';
import { z } from 'zod';
import type { Descriptor } from '../../core/config/descriptor';
import { parseJson } from '../../core/config/formats/json';
import {
  bucketAndKey,
  fillPlaceholders,
  HUB_ROOT,
  type HubSource,
  hubFolder,
  isPinned,
  parseHubSource,
} from '../../core/config/formats/places';
import { type FetchedCommits, namedConfig, namedHubSources } from '../../core/config/inline';
import { issue } from '../../core/config/issue';
import { loadRun } from '../../core/config/load';
import { awsClient } from '../aws-client';
import { findDescriptor, usualEnvironment } from '../environment/environment';
import { Refusal, UsageError } from '../exit';
import type { CommonOptions, GivenFile } from '../inputs';
import { textIn } from '../runs/reports/committed-checkpoints';

/** The record that the fetch step writes last. */
const fetchedFiles = z.object({
  commit: z.string(),
  files: z.array(z.object({ path: z.string(), bytes: z.number() })).max(20_000),
});

/** Text of an object, read with the caller's own permissions; undefined when it does not exist. */
function readS3Text(uri: string, descriptor: Descriptor): Promise<string | undefined> {
  const { Bucket, Key } = bucketAndKey(fillPlaceholders(uri, { descriptor, runId: '' }));
  return textIn(awsClient(S3Client, { region: descriptor.region }), Bucket, Key);
}

/** The commit of a revision that a team has fetched, and its files; undefined before its record was written. */
export async function findFetched(
  source: HubSource,
  descriptor: Descriptor,
  root = HUB_ROOT,
): Promise<z.infer<typeof fetchedFiles> | undefined> {
  const ref = `${root}.refs/${source.kind}s/${source.name}/${encodeURIComponent(source.revision)}`;
  const commit = isPinned(source) ? source.revision : await readS3Text(ref, descriptor);
  if (commit === undefined) return undefined;
  const record = await readS3Text(`${hubFolder({ ...source, revision: commit }, root)}SOURCE.json`, descriptor);
  return record === undefined ? undefined : fetchedFiles.safeParse(parseJson(record)).data;
}

/** The environment in which a run file is looked at: that of the options, of the file, or the only one that there is. */
const environmentFor = ({ text }: GivenFile, { environment, set }: CommonOptions): string | undefined =>
  environment ?? loadRun(text, set).value?.environment ?? usualEnvironment();

/**
 * Adds the fetched commits of the models and data sets that a run file names. Without an environment nothing is read, and a rule rejects
 * sources without a commit.
 * @throws Refusal for a repository that was not fetched, with the command that does it
 */
async function withFetched<T extends CommonOptions>(file: GivenFile, options: T): Promise<T> {
  const named = namedHubSources(file.text, options.set).filter((source) => options.fetched?.[source] === undefined);
  const environment = named.length > 0 ? environmentFor(file, options) : undefined;
  if (!environment) return options;
  const descriptor = await findDescriptor(options, environment);
  const found = await Promise.all(named.map((source) => lookup(source, descriptor)));
  const missing = named.filter((_, i) => found[i] === undefined);
  if (missing.length > 0) throw new Refusal(missing.map((source) => notFetched(source, environment)));
  return { ...options, fetched: { ...options.fetched, ...(Object.assign({}, ...found) as FetchedCommits) } };
}

async function lookup(text: string, descriptor: Descriptor): Promise<FetchedCommits | undefined> {
  const source = parseHubSource(text);
  const found = source && (await findFetched(source, descriptor));
  if (!found) return undefined;
  const { commit } = found;
  const isModel = source.kind === 'model';
  const folder = hubFolder({ ...source, revision: commit });
  const config = isModel ? await readS3Text(`${folder}config.json`, descriptor) : undefined;
  return { [text]: { commit, ...(config !== undefined && { config }) } };
}

const notFetched = (source: string, environment: string) =>
  issue('data/hub-fetched', 'error', source.startsWith('hf:datasets/') ? 'data' : 'model.weights', {
    must: `must have been fetched by a team of ${environment}`,
    got: source,
    fix: `slipway fetch ${source} --environment ${environment}, or slipway launch with --fetch`,
  });

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
