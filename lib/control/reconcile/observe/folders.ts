import { paginateListObjectsV2, type S3Client } from '@aws-sdk/client-s3';
import { parseS3Uri } from '../../../core/config/formats/places';

/** One level of a prefix, as S3 lists it with a delimiter. */
export interface Folder {
  /** Names of its subfolders, each with a trailing slash. */
  folders: string[];
  /** Objects by their names relative to the prefix. */
  objects: ReadonlyMap<string, { bytes: number; writtenAt: number }>;
  /** When any of its objects was last written, by S3's clock; 0 without objects. */
  newestWriteAt: number;
}

interface ListOptions {
  /** Lists everything below the folder. @default - one level */
  deep?: boolean;
  /** Lists only names that begin with this text. @default - all */
  startsWith?: string;
  /** Number of objects after which no further page is read. @default - none */
  most?: number;
}

export async function listFolder(
  s3: S3Client,
  uri: string,
  { deep = false, startsWith = '', most = Number.POSITIVE_INFINITY }: ListOptions = {},
): Promise<Folder> {
  const { bucket, key } = parseS3Uri(uri);
  const input = { Bucket: bucket, Prefix: `${key}${startsWith}`, ...(!deep && { Delimiter: '/' }) };
  const folders: string[] = [];
  const objects = new Map<string, { bytes: number; writtenAt: number }>();
  let newestWriteAt = 0;
  for await (const { CommonPrefixes = [], Contents = [] } of paginateListObjectsV2({ client: s3 }, input)) {
    for (const { Prefix } of CommonPrefixes) if (Prefix) folders.push(Prefix.slice(key.length));
    for (const { Key, Size = 0, LastModified } of Contents) {
      if (!Key) continue;
      const writtenAt = LastModified?.getTime() ?? 0;
      objects.set(Key.slice(key.length), { bytes: Size, writtenAt });
      newestWriteAt = Math.max(newestWriteAt, writtenAt);
    }
    if (objects.size >= most) break;
  }
  return { folders, objects, newestWriteAt };
}
