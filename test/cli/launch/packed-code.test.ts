import { gunzipSync } from 'node:zlib';
import { GetObjectCommand, ListObjectsV2Command, S3Client } from '@aws-sdk/client-s3';
import { beforeEach, expect, test } from 'vitest';
import { packedCode } from '../../../lib/cli/launch/submit';
import { mockClient } from '../../support/mocked-clients';
import { BASE, DESCRIPTOR, runOf } from '../../support/runs';

const s3 = mockClient(S3Client);
beforeEach(() => s3.reset());

function prefixHolds(files: Record<string, string>) {
  s3.on(ListObjectsV2Command, { Bucket: 'data-bucket', Prefix: 'code/' }).resolves({
    Contents: Object.entries(files).map(([Key, text]) => ({ Key, Size: text.length })),
  });
  for (const [Key, text] of Object.entries(files))
    s3.on(GetObjectCommand, { Bucket: 'data-bucket', Key }).resolves({
      Body: { transformToByteArray: async () => Buffer.from(text) } as never,
    });
}
const pack = () => packedCode(runOf({ ...BASE, code: { source: 's3://{dataBucket}/code/' } }), 'run.yaml', DESCRIPTOR);

test('a prefix is packed like a folder: equal objects give an equal archive', async () => {
  prefixHolds({ 'code/': '', 'code/train.py': 'print(1)', 'code/lib/a.py': 'x = 1' });
  const first = await pack();
  const tar = gunzipSync(first?.bytes ?? Buffer.alloc(0)).toString('latin1');
  expect(tar).toContain('lib/a.py');
  expect(tar).toContain('print(1)');
  expect((await pack())?.sha256).toBe(first?.sha256);
});

test('fails: an empty prefix, and keys that would leave the folder', async () => {
  prefixHolds({});
  await expect(pack()).rejects.toThrow(/must be a prefix with objects, got s3:\/\/data-bucket\/code\//);
  for (const key of ['code/../x.py', 'code//etc/x', 'code/a/../../../x', 'code/..', 'code/.']) {
    prefixHolds({ [key]: 'x' });
    await expect(pack()).rejects.toThrow(/must contain plain file names/);
  }
});

test('fails: a prefix with more than code', async () => {
  s3.on(ListObjectsV2Command).resolves({ Contents: [{ Key: 'code/data.bin', Size: 600 * 2 ** 20 }] });
  await expect(pack()).rejects.toThrow(/must contain at most 512 MiB, got 600 MiB/);
});
