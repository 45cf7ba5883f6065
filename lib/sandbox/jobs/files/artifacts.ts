import { execFile } from 'node:child_process';
import { cp, mkdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import type { S3Client } from '@aws-sdk/client-s3';
import type { OutputDataConfig } from '@aws-sdk/client-sagemaker';
import { eachInTurn } from '../../../shared/aws/pace';
import { filesBelow } from './folder-sync';
import { parseS3Uri, uploadFile } from './s3-transfer';

const run = promisify(execFile);
const PARALLEL = 8;

export interface ArtifactContext {
  s3: S3Client;
  jobName: string;
  output: OutputDataConfig;
  /** Base folders of the instances in the order of their numbers: of two files with the same name, the later one is kept. */
  bases: readonly string[];
  /** Scratch folder of the job. */
  scratch: string;
}

/** The two folders that are kept after a job. */
export type ArtifactPart = 'model' | 'output';

/** Uploads what the instances left in `model` and `output`, as archives or, with CompressionType NONE, file by file. */
export async function uploadArtifacts(context: ArtifactContext, parts: readonly ArtifactPart[]): Promise<void> {
  const loose = context.output.CompressionType === 'NONE';
  for (const part of parts) {
    const union = path.join(context.scratch, part);
    await merge(context.bases, loose && part === 'output' ? path.join('output', 'data') : part, union);
    const files = await filesBelow(union);
    if (files.length === 0) continue;
    if (loose) {
      const name = part === 'output' ? 'data' : part;
      await eachInTurn(files, PARALLEL, (file) => upload(context, path.join(union, file), `${name}/${file}`));
    } else {
      const archive = `${union}.tar.gz`;
      await run('tar', ['-czf', archive, '-C', union, '.']);
      await upload(context, archive, `${part}.tar.gz`);
    }
  }
}

/** Host names are not part of the path: instances that write the same file name overwrite each other, as on SageMaker. */
async function merge(bases: readonly string[], folder: string, into: string): Promise<void> {
  await rm(into, { recursive: true, force: true });
  await mkdir(into, { recursive: true });
  for (const base of bases) await cp(path.join(base, folder), into, { recursive: true, force: true });
}

function upload({ s3, jobName, output }: ArtifactContext, file: string, name: string): Promise<void> {
  const { bucket, key } = parseS3Uri(output.S3OutputPath ?? '');
  const folder = key.replace(/\/$/, '');
  const target = [folder, jobName, 'output', name].filter((part) => part !== '').join('/');
  return uploadFile(s3, file, { bucket, key: target }, output.KmsKeyId);
}
