import { readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { DeleteObjectCommand, type S3Client } from '@aws-sdk/client-s3';
import { eachInTurn } from '../../../shared/aws/pace';
import { objectsBelow } from '../../../shared/aws/pages';
import { relativeTo } from './inputs';
import { downloadObject, parseS3Uri, uploadFile } from './s3-transfer';

const PARALLEL = 8;
/** Interval at which the folder is compared with what was uploaded. */
const INTERVAL_MS = 1000;

/** Copies everything below the checkpoint URI to `folder`, as the service does on every instance before it starts. */
export async function restoreCheckpoints(
  s3: S3Client,
  uri: string,
  folder: string,
  signal: AbortSignal,
): Promise<void> {
  const location = parseS3Uri(uri);
  const objects = await objectsBelow(s3, location.bucket, location.key);
  await eachInTurn(objects, PARALLEL, ({ key }) =>
    downloadObject(s3, { ...location, key }, path.join(folder, relativeTo(location.key, key)), signal),
  );
}

export interface SyncedFolder {
  uri: string;
  folder: string;
  /** Whether a file that is deleted here is also deleted in S3: true for checkpoints, false for outputs of processing jobs. */
  deletes: boolean;
  kmsKeyId?: string;
}

/** Synchronizes a folder to S3 while a job runs: uploads new and changed files, deletes deleted ones. */
export class FolderSync {
  private readonly uploaded = new Map<string, string>();
  private timer?: NodeJS.Timeout;
  private running: Promise<void> = Promise.resolve();

  constructor(
    private readonly s3: S3Client,
    private readonly synced: SyncedFolder,
    private readonly onError: (error: Error) => void,
  ) {}

  /** Treats the current content of the folder (the restored checkpoints) as uploaded, then watches it. */
  async start(): Promise<void> {
    for (const [file, version] of await versions(this.synced.folder)) this.uploaded.set(file, version);
    this.timer = setInterval(() => {
      this.running = this.running.then(() => this.once());
    }, INTERVAL_MS);
  }

  /** Stops watching, after a final comparison if `flush`. */
  async stop(flush: boolean): Promise<void> {
    clearInterval(this.timer);
    await this.running;
    if (flush) await this.once();
  }

  private async once(): Promise<void> {
    try {
      await this.compare();
    } catch (error) {
      this.onError(error as Error);
    }
  }

  private async compare(): Promise<void> {
    const now = await versions(this.synced.folder);
    const changed = [...now].filter(([file, version]) => this.uploaded.get(file) !== version);
    await eachInTurn(changed, PARALLEL, ([file, version]) => this.upload(file, version).catch(ignoreMissing));
    if (!this.synced.deletes) return;
    for (const file of [...this.uploaded.keys()].filter((known) => !now.has(known))) {
      const { bucket, key } = this.at(file);
      await this.s3.send(new DeleteObjectCommand({ Bucket: bucket, Key: key }));
      this.uploaded.delete(file);
    }
  }

  private async upload(file: string, version: string): Promise<void> {
    await uploadFile(this.s3, path.join(this.synced.folder, file), this.at(file), this.synced.kmsKeyId);
    this.uploaded.set(file, version);
  }

  private at(file: string) {
    const { bucket, key } = parseS3Uri(this.synced.uri);
    return { bucket, key: `${key.replace(/\/$/, '')}/${file}`.replace(/^\//, '') };
  }
}

/** Every file of a folder with its size and modification time. */
async function versions(folder: string): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  for (const file of await filesBelow(folder)) {
    const now = await stat(path.join(folder, file)).catch(ignoreMissing);
    if (now) found.set(file, `${now.size}:${now.mtimeMs}`);
  }
  return found;
}

/** Relative paths of all files below a folder, with forward slashes; empty when the folder does not exist. */
export async function filesBelow(folder: string): Promise<string[]> {
  const entries = (await readdir(folder, { recursive: true, withFileTypes: true }).catch(ignoreMissing)) ?? [];
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(folder, path.join(entry.parentPath, entry.name)).split(path.sep).join('/'))
    .sort();
}

/** A running program renames and deletes its files, so a missing file is not an error. */
function ignoreMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error;
}
