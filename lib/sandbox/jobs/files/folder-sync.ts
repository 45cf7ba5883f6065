import { readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import type { S3Client } from '@aws-sdk/client-s3';
import { relativeTo } from './input-files';
import { deleteObject, downloadObject, inParallel, listKeys, parseS3Uri, uploadFile } from './s3-transfer';

const PARALLEL = 8;
/** How often the folder is compared with what was uploaded. */
const INTERVAL_MS = 1000;

/** Copies everything below the checkpoint address into `folder`, as the service does on every instance before it starts. */
export async function restoreCheckpoints(
  s3: S3Client,
  uri: string,
  folder: string,
  signal: AbortSignal,
): Promise<void> {
  const location = parseS3Uri(uri);
  const keys = await listKeys(s3, location);
  await inParallel(keys, PARALLEL, (key) =>
    downloadObject(s3, { ...location, key }, path.join(folder, relativeTo(location.key, key)), signal),
  );
}

/** A folder of an instance and its place in S3. */
export interface SyncedFolder {
  uri: string;
  folder: string;
  /** Whether a file that is deleted here is deleted there: so with checkpoints, not with the output of processing jobs. */
  deletes: boolean;
  kmsKeyId?: string;
}

/** Keeps S3 equal to a folder while a job runs: uploads what is new or changed, deletes what was deleted. */
export class FolderSync {
  private readonly uploaded = new Map<string, string>();
  private timer?: NodeJS.Timeout;
  private running: Promise<void> = Promise.resolve();

  constructor(
    private readonly s3: S3Client,
    private readonly synced: SyncedFolder,
    private readonly onError: (error: Error) => void,
  ) {}

  /** Takes what the folder holds now (the restored checkpoints) as known, then watches it. */
  async start(): Promise<void> {
    for (const [file, version] of await versions(this.synced.folder)) this.uploaded.set(file, version);
    this.timer = setInterval(() => {
      this.running = this.running.then(() => this.once());
    }, INTERVAL_MS);
  }

  /** Stops watching, after a last comparison when `flush`. */
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
    await inParallel(changed, PARALLEL, ([file, version]) => this.upload(file, version).catch(ignoreMissing));
    if (!this.synced.deletes) return;
    for (const file of [...this.uploaded.keys()].filter((known) => !now.has(known))) {
      await deleteObject(this.s3, this.at(file));
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

/** Every file of a folder with its size and time of change. */
async function versions(folder: string): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  for (const file of await filesBelow(folder)) {
    const now = await stat(path.join(folder, file)).catch(ignoreMissing);
    if (now) found.set(file, `${now.size}:${now.mtimeMs}`);
  }
  return found;
}

/** Paths of all files below a folder, relative to it, with forward slashes; none when the folder is not there. */
export async function filesBelow(folder: string): Promise<string[]> {
  const entries = (await readdir(folder, { recursive: true, withFileTypes: true }).catch(ignoreMissing)) ?? [];
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(folder, path.join(entry.parentPath, entry.name)).split(path.sep).join('/'))
    .sort();
}

/** A program that still runs renames and deletes its files: what is gone is no error. */
function ignoreMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error;
}
