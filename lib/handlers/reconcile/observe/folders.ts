import { type ListObjectsV2CommandOutput, paginateListObjectsV2, type S3Client } from '@aws-sdk/client-s3';
import { parseS3Uri } from '../../../spec/formats/s3-uri';

/** One level of a prefix, as S3 lists it with a delimiter. */
export interface Folder {
  /** Names of its subfolders, each with a trailing slash. */
  folders: string[];
  /** Objects by their names relative to the prefix. */
  objects: ReadonlyMap<string, { bytes: number; writtenAt: number }>;
  /** When any of its objects was last written, by S3's clock; 0 without objects. */
  newestWriteAt: number;
}

/**
 * Lists one folder of a bucket.
 * @param options.deep lists everything below it instead of one level
 */
export async function listFolder(s3: S3Client, uri: string, options: { deep?: boolean } = {}): Promise<Folder> {
  const { bucket, key } = parseS3Uri(uri);
  const input = { Bucket: bucket, Prefix: key, ...(!options.deep && { Delimiter: '/' }) };
  const pages: ListObjectsV2CommandOutput[] = [];
  for await (const page of paginateListObjectsV2({ client: s3 }, input)) pages.push(page);
  return folderOf(pages, key);
}

/** Combines the pages of a listing into a folder. */
export function folderOf(pages: readonly Partial<ListObjectsV2CommandOutput>[], key: string): Folder {
  const folders: string[] = [];
  const objects = new Map<string, { bytes: number; writtenAt: number }>();
  let newestWriteAt = 0;
  for (const page of pages) {
    for (const { Prefix } of page.CommonPrefixes ?? []) if (Prefix) folders.push(Prefix.slice(key.length));
    for (const { Key, Size = 0, LastModified } of page.Contents ?? []) {
      if (!Key) continue;
      const writtenAt = LastModified?.getTime() ?? 0;
      objects.set(Key.slice(key.length), { bytes: Size, writtenAt });
      newestWriteAt = Math.max(newestWriteAt, writtenAt);
    }
  }
  return { folders, objects, newestWriteAt };
}
