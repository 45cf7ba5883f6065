import { paginateListObjectsV2, type S3Client } from '@aws-sdk/client-s3';

export async function itemsOf<Page, Item>(
  pages: AsyncIterable<Page>,
  itemsIn: (page: Page) => readonly Item[] | undefined,
): Promise<Item[]> {
  const items: Item[] = [];
  for await (const page of pages) items.push(...(itemsIn(page) ?? []));
  return items;
}

export interface ListedObject {
  key: string;
  bytes: number;
}

/** Objects with this key prefix, without empty folder placeholders. */
export async function objectsBelow(client: S3Client, Bucket: string, Prefix: string): Promise<ListedObject[]> {
  const listed = await itemsOf(paginateListObjectsV2({ client }, { Bucket, Prefix }), ({ Contents }) => Contents);
  return listed.flatMap(({ Key = '', Size = 0 }) => (Key.endsWith('/') ? [] : [{ key: Key, bytes: Size }]));
}
