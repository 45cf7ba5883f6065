import { constants } from 'node:fs';
import { copyFile, mkdir, symlink } from 'node:fs/promises';
import path from 'node:path';
import type { S3Client } from '@aws-sdk/client-s3';
import type { Channel, ProcessingInput, ProcessingOutput } from '@aws-sdk/client-sagemaker';
import { parseJson } from '../../../core/config/formats/json';
import type { S3Place } from '../../../core/config/formats/places';
import { eachInTurn } from '../../../shared/aws/pace';
import { objectsBelow } from '../../../shared/aws/pages';
import type { Cluster } from '../cluster';
import { clientError, JobFailure } from '../job-failure';
import { downloadObject, parseS3Uri, readObject } from './s3-transfer';

/** One input of a job, independent of the API. */
export interface InputSource {
  name: string;
  /** Destination, below the base folder of an instance. */
  folder: string;
  mode: string;
  s3Uri?: string;
  s3DataType?: string;
  distribution?: string;
  /** Instance groups that receive it; absent: all. */
  groups?: string[];
  /** Folder of a file system, below the folder that represents all of them. */
  fileSystem?: string;
}

/** Converts a channel of a training job to an input. */
export function channelInput(channel: Channel, jobInputMode: string): InputSource {
  const name = channel.ChannelName ?? '';
  const s3 = channel.DataSource?.S3DataSource;
  const files = channel.DataSource?.FileSystemDataSource;
  return {
    name,
    folder: path.join('input', 'data', name),
    mode: channel.InputMode ?? jobInputMode,
    s3Uri: s3?.S3Uri,
    s3DataType: s3?.S3DataType,
    distribution: s3?.S3DataDistributionType,
    groups: s3?.InstanceGroupNames,
    fileSystem: files && path.join(files.FileSystemId ?? '', files.DirectoryPath ?? ''),
  };
}

/** Converts a ProcessingInput to an input; undefined when the application itself downloads it. */
export function processingInput(input: ProcessingInput): InputSource | undefined {
  const s3 = input.S3Input;
  if (!s3 || input.AppManaged) return undefined;
  return {
    name: input.InputName ?? '',
    folder: belowBase(s3.LocalPath ?? ''),
    mode: s3.S3InputMode ?? 'File',
    s3Uri: s3.S3Uri,
    s3DataType: s3.S3DataType,
    distribution: s3.S3DataDistributionType,
  };
}

/** Converts a path in the container to a path below the folder that represents /opt/ml on an instance. */
export function belowBase(localPath: string): string {
  return path.relative('/opt/ml', localPath);
}

/** Folder of an output of a processing job, below the base folder of an instance. */
export const outputFolder = (output: ProcessingOutput): string => belowBase(output.S3Output?.LocalPath ?? '');

const PARALLEL_DOWNLOADS = 8;

interface InputContext {
  s3: S3Client;
  region: string;
  cluster: Cluster;
  /** Base folder of an instance. */
  baseOf: (host: string) => string;
  /** Folder that represents the file systems of the account. */
  fileSystems: string;
  signal: AbortSignal;
}

/**
 * Puts every input into the file tree of each instance that receives it: S3 objects as copies (also for FastFile; Pipe is rejected), EFS
 * and FSx as a link to a folder that all jobs of the sandbox share.
 * @throws JobFailure ClientError when there is nothing to read or the role has no permission
 */
export async function downloadInputs(inputs: readonly InputSource[], context: InputContext): Promise<void> {
  for (const input of inputs) {
    if (input.mode === 'Pipe') {
      throw clientError(`input ${input.name}: input mode Pipe is not supported by the sandbox`);
    }
    if (input.fileSystem !== undefined) await linkFileSystem(input.fileSystem, input, context);
    else await download(input, context).catch((error: Error) => rethrow(error, input, context));
  }
}

function rethrow(error: Error, input: InputSource, { signal }: InputContext): never {
  if (error instanceof JobFailure || signal.aborted) throw error;
  throw clientError(`Data download failed: ${error.message}, S3 URL ${input.s3Uri}`);
}

async function download(input: InputSource, context: InputContext): Promise<void> {
  const hosts = hostsOfInput(input, context.cluster);
  for (const host of hosts) await mkdir(folderOf(context, host, input), { recursive: true });
  const files = await inputFiles(context.s3, input, context.region);
  await eachInTurn([...files.entries()], PARALLEL_DOWNLOADS, async ([index, file]) => {
    const targets = consumers(index, hosts, input.distribution).map((host) =>
      path.join(folderOf(context, host, input), file.relativePath),
    );
    const [first, ...others] = targets;
    if (first === undefined) return;
    await downloadObject(context.s3, file.from, first, context.signal);
    for (const other of others) {
      await mkdir(path.dirname(other), { recursive: true });
      await copyFile(first, other, constants.COPYFILE_FICLONE);
    }
  });
}

async function linkFileSystem(folder: string, input: InputSource, context: InputContext): Promise<void> {
  const shared = path.join(context.fileSystems, folder);
  await mkdir(shared, { recursive: true });
  for (const { host } of context.cluster.instances) {
    const link = folderOf(context, host, input);
    await mkdir(path.dirname(link), { recursive: true });
    await symlink(shared, link);
  }
}

const folderOf = (context: InputContext, host: string, input: InputSource) =>
  path.join(context.baseOf(host), input.folder);

/** One object of an input, and its path below the input's folder. */
interface InputFile {
  from: S3Place;
  relativePath: string;
}

async function inputFiles(s3: S3Client, input: InputSource, region: string): Promise<InputFile[]> {
  const uri = input.s3Uri ?? '';
  const files =
    input.s3DataType === 'S3Prefix' ? await prefixFiles(s3, uri) : await manifestFiles(s3, uri, input.s3DataType);
  if (files.length === 0) {
    throw clientError(
      `Data download failed: No S3 objects found under S3 URL "${uri}" given in input data source. Please ensure that the ` +
        `bucket exists in the selected region (${region}), that objects exist under that S3 prefix.`,
    );
  }
  return files;
}

async function prefixFiles(s3: S3Client, uri: string): Promise<InputFile[]> {
  const location = parseS3Uri(uri);
  const objects = await objectsBelow(s3, location.bucket, location.key);
  return objects.map(({ key }) => ({ from: { ...location, key }, relativePath: relativeTo(location.key, key) }));
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
    throw clientError(`S3DataType ${type} is not supported by the sandbox; use S3Prefix or ManifestFile`);
  }
  return parseManifest(await readObject(s3, parseS3Uri(uri)), uri);
}

/** @throws JobFailure when the text is not a manifest */
export function parseManifest(text: string, uri: string): InputFile[] {
  const broken = () => clientError(`Data download failed: Manifest file ${uri} is not in valid format`);
  const entries = parseJson(text);
  const [head, ...names] = Array.isArray(entries) ? entries : [];
  const prefix = (head as { prefix?: unknown } | undefined)?.prefix;
  if (typeof prefix !== 'string' || names.some((name) => typeof name !== 'string')) throw broken();
  return names.map((name: string) => ({ from: parseS3Uri(`${prefix}${name}`), relativePath: name }));
}

/** The hosts that receive an input: those of its instance groups, or all. */
function hostsOfInput(input: InputSource, cluster: Cluster): string[] {
  const taking = cluster.instances.filter(({ group }) => !input.groups?.length || input.groups.includes(group));
  return taking.map((instance) => instance.host);
}

/** Which hosts receive file number `index` of an input: all, or one in turn when the input is sharded. */
export function consumers(index: number, hosts: readonly string[], distribution: string | undefined): string[] {
  if (distribution !== 'ShardedByS3Key') return [...hosts];
  const host = hosts[index % hosts.length];
  return host === undefined ? [] : [host];
}
