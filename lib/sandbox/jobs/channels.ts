import { constants } from 'node:fs';
import { copyFile, mkdir, symlink } from 'node:fs/promises';
import path from 'node:path';
import type { S3Client } from '@aws-sdk/client-s3';
import type { Channel, FileSystemDataSource } from '@aws-sdk/client-sagemaker';
import { channelFiles, consumers, hostsOfChannel } from './channel-files';
import type { Cluster } from './cluster';
import { JobFailure } from './job-failure';
import { downloadObject, inParallel } from './s3-transfer';

const PARALLEL_DOWNLOADS = 8;

export interface ChannelContext {
  s3: S3Client;
  region: string;
  cluster: Cluster;
  /** Base folder of an instance. */
  baseOf: (host: string) => string;
  /** Folder that stands for the file systems of the account. */
  fileSystems: string;
  signal: AbortSignal;
}

/**
 * Puts every channel into the tree of each instance that takes it: S3 objects as copies (FastFile too; Pipe is refused), EFS and
 * FSx as a link to a folder that all jobs of the sandbox share.
 * @throws JobFailure ClientError when there is nothing to read or the role may not
 */
export async function downloadChannels(channels: readonly Channel[], jobInputMode: string, context: ChannelContext) {
  for (const channel of channels) {
    const mode = channel.InputMode ?? jobInputMode;
    if (mode === 'Pipe') {
      throw new JobFailure(
        'ClientError',
        `channel ${channel.ChannelName}: input mode Pipe is not supported by the sandbox`,
      );
    }
    const fileSystem = channel.DataSource?.FileSystemDataSource;
    if (fileSystem) await linkFileSystem(channel, fileSystem, context);
    else await downloadChannel(channel, context).catch((error: Error) => rethrow(error, channel, context));
  }
}

function rethrow(error: Error, channel: Channel, { signal }: ChannelContext): never {
  if (error instanceof JobFailure || signal.aborted) throw error;
  const uri = channel.DataSource?.S3DataSource?.S3Uri;
  throw new JobFailure('ClientError', `Data download failed: ${error.message}, S3 URL ${uri}`);
}

async function downloadChannel(channel: Channel, context: ChannelContext): Promise<void> {
  const hosts = hostsOfChannel(channel, context.cluster);
  for (const host of hosts) await mkdir(folderOf(context, host, channel), { recursive: true });
  const files = await channelFiles(context.s3, channel, context.region);
  const distribution = channel.DataSource?.S3DataSource?.S3DataDistributionType;
  await inParallel([...files.entries()], PARALLEL_DOWNLOADS, async ([index, file]) => {
    const targets = consumers(index, hosts, distribution).map((host) =>
      path.join(folderOf(context, host, channel), file.relativePath),
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

async function linkFileSystem(channel: Channel, source: FileSystemDataSource, context: ChannelContext): Promise<void> {
  const shared = path.join(context.fileSystems, source.FileSystemId ?? '', source.DirectoryPath ?? '');
  await mkdir(shared, { recursive: true });
  for (const { host } of context.cluster.instances) {
    const folder = folderOf(context, host, channel);
    await mkdir(path.dirname(folder), { recursive: true });
    await symlink(shared, folder);
  }
}

const folderOf = (context: ChannelContext, host: string, channel: Channel) =>
  path.join(context.baseOf(host), 'input', 'data', channel.ChannelName ?? '');
