import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { FolderSync } from '../../../lib/sandbox/jobs/files/folder-sync';
import { mockClient } from '../../support/mocked-clients';

const s3 = mockClient(S3Client);
let folder: string;
beforeEach(() => {
  s3.reset();
  folder = mkdtempSync(path.join(tmpdir(), 'slipway-sync-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** What one comparison uploads, by key; `meanwhile` runs before the first object is read. */
async function uploads(meanwhile: () => void): Promise<{ stored: Record<string, string>; errors: Error[] }> {
  const stored: Record<string, string> = {};
  const errors: Error[] = [];
  let first = true;
  s3.on(PutObjectCommand).callsFake(async ({ Key, Body, ContentLength }) => {
    if (first) meanwhile();
    first = false;
    stored[Key] = Body === '' ? '' : await text(Body as Readable);
    expect(ContentLength).toBe(stored[Key]?.length);
    return {};
  });
  const synced = { uri: 's3://bucket/out/', folder, deletes: false };
  await new FolderSync(new S3Client({}), synced, (error) => errors.push(error)).stop(true);
  return { stored, errors };
}

test('a file that is renamed or lengthened while it is uploaded arrives as it was; one that is gone before its turn is no error', async () => {
  // Eight are uploaded at a time; the last has to wait.
  const names = Array.from({ length: 10 }, (_, n) => `file-${n}.tmp`);
  for (const name of names) writeFileSync(path.join(folder, name), `text of ${name}`);
  writeFileSync(path.join(folder, 'empty'), '');
  const { stored, errors } = await uploads(() => {
    renameSync(path.join(folder, 'file-9.tmp'), path.join(folder, 'file-9'));
    renameSync(path.join(folder, 'file-0.tmp'), path.join(folder, 'file-0'));
    writeFileSync(path.join(folder, 'file-1.tmp'), `${readFileSync(path.join(folder, 'file-1.tmp'), 'utf8')} and more`);
  });
  expect(errors).toEqual([]);
  const expected = names.filter((name) => name !== 'file-9.tmp').map((name) => [`out/${name}`, `text of ${name}`]);
  expect(stored).toEqual({ ...Object.fromEntries(expected), 'out/empty': '' });
});
