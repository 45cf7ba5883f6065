import type { S3Client } from '@aws-sdk/client-s3';
import type { Cluster } from '../cluster';
import { JobFailure } from '../job-failure';
import type { InputSource } from './input-source';
import { listKeys, parseS3Uri, readObject, type S3Location } from './s3-transfer';

/** One object of an input, and its path below the input's folder. */
export interface InputFile {
  from: S3Location;
  relativePath: string;
}

/** The objects of an S3 input. */
export async function inputFiles(s3: S3Client, input: InputSource, region: string): Promise<InputFile[]> {
  const uri = input.s3Uri ?? '';
  const files =
    input.s3DataType === 'S3Prefix' ? await prefixFiles(s3, uri) : await manifestFiles(s3, uri, input.s3DataType);
  if (files.length === 0) {
    throw new JobFailure(
      'ClientError',
      `Data download failed: No S3 objects found under S3 URL "${uri}" given in input data source. Please ensure that the ` +
        `bucket exists in the selected region (${region}), that objects exist under that S3 prefix.`,
    );
  }
  return files;
}

async function prefixFiles(s3: S3Client, uri: string): Promise<InputFile[]> {
  const location = parseS3Uri(uri);
  const keys = await listKeys(s3, location);
  return keys.map((key) => ({ from: { ...location, key }, relativePath: relativeTo(location.key, key) }));
}

/**
 * Path of a key below its prefix. A prefix that ends within a name, such as `data/train` for `data/train-old/a`, keeps the whole name:
 * https://github.com/aws/sagemaker-python-sdk/issues/3612.
 */
export function relativeTo(prefix: string, key: string): string {
  const folder = key.startsWith(`${prefix}/`) ? `${prefix}/` : prefix.slice(0, prefix.lastIndexOf('/') + 1);
  return key.slice(folder.length).replace(/^\/+/, '');
}

/** The objects that a manifest lists: `[{"prefix": "s3://bucket/folder/"}, "one", "two", ...]`. */
async function manifestFiles(s3: S3Client, uri: string, type: string | undefined): Promise<InputFile[]> {
  if (type !== 'ManifestFile') {
    throw new JobFailure(
      'ClientError',
      `S3DataType ${type} is not supported by the sandbox; use S3Prefix or ManifestFile`,
    );
  }
  return parseManifest(await readObject(s3, parseS3Uri(uri)), uri);
}

/** @throws JobFailure when the text is not a manifest */
export function parseManifest(text: string, uri: string): InputFile[] {
  const broken = () =>
    new JobFailure('ClientError', `Data download failed: Manifest file ${uri} is not in valid format`);
  let entries: unknown;
  try {
    entries = JSON.parse(text);
  } catch {
    throw broken();
  }
  const [head, ...names] = Array.isArray(entries) ? entries : [];
  const prefix = (head as { prefix?: unknown } | undefined)?.prefix;
  if (typeof prefix !== 'string' || names.some((name) => typeof name !== 'string')) throw broken();
  return names.map((name: string) => ({ from: parseS3Uri(`${prefix}${name}`), relativePath: name }));
}

/** The hosts that receive an input: those of its instance groups, or all. */
export function hostsOfInput(input: InputSource, cluster: Cluster): string[] {
  const taking = cluster.instances.filter(({ group }) => !input.groups?.length || input.groups.includes(group));
  return taking.map((instance) => instance.host);
}

/** Which hosts receive file number `index` of an input: all, or one in turn when the input is sharded. */
export function consumers(index: number, hosts: readonly string[], distribution: string | undefined): string[] {
  if (distribution !== 'ShardedByS3Key') return [...hosts];
  const host = hosts[index % hosts.length];
  return host === undefined ? [] : [host];
}
