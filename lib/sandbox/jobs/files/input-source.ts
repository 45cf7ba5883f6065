import path from 'node:path';
import type { Channel, ProcessingInput, ProcessingOutput } from '@aws-sdk/client-sagemaker';

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
