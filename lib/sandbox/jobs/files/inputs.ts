import { constants } from 'node:fs';
import { copyFile, mkdir, symlink } from 'node:fs/promises';
import path from 'node:path';
import type { S3Client } from '@aws-sdk/client-s3';
import type { Cluster } from '../cluster';
import { JobFailure } from '../job-failure';
import { consumers, hostsOfInput, inputFiles } from './input-files';
import type { InputSource } from './input-source';
import { downloadObject, inParallel } from './s3-transfer';

const PARALLEL_DOWNLOADS = 8;

/** Destination of the inputs, and the credentials for reading them. */
export interface InputContext {
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
      throw new JobFailure('ClientError', `input ${input.name}: input mode Pipe is not supported by the sandbox`);
    }
    if (input.fileSystem !== undefined) await linkFileSystem(input.fileSystem, input, context);
    else await download(input, context).catch((error: Error) => rethrow(error, input, context));
  }
}

function rethrow(error: Error, input: InputSource, { signal }: InputContext): never {
  if (error instanceof JobFailure || signal.aborted) throw error;
  throw new JobFailure('ClientError', `Data download failed: ${error.message}, S3 URL ${input.s3Uri}`);
}

async function download(input: InputSource, context: InputContext): Promise<void> {
  const hosts = hostsOfInput(input, context.cluster);
  for (const host of hosts) await mkdir(folderOf(context, host, input), { recursive: true });
  const files = await inputFiles(context.s3, input, context.region);
  await inParallel([...files.entries()], PARALLEL_DOWNLOADS, async ([index, file]) => {
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
