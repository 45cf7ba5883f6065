import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { GetObjectCommand, ListObjectsV2Command, S3Client } from '@aws-sdk/client-s3';
import { afterAll, beforeEach, expect, test } from 'vitest';
import { readData } from '../../lib/cli/hub/finetune-inputs';
import { mockClient } from '../support/mocked-clients';
import { DESCRIPTOR } from '../support/runs';

const folder = mkdtempSync(path.join(tmpdir(), 'slipway-hub-data-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const s3 = mockClient(S3Client);
beforeEach(() => s3.reset());

const read = (method: 'sft' | 'dpo', ...names: string[]) => {
  const Contents = names.map((name, i) => ({ Key: `rows/${name}`, Size: 100 + i }));
  s3.on(ListObjectsV2Command).resolves({ Contents });
  s3.on(GetObjectCommand).resolves({ Body: { transformToByteArray: async () => Buffer.from('{}') } as never });
  return readData('s3://{dataBucket}/rows/', method, { descriptor: DESCRIPTOR, folder });
};

const ULTRA = ['train_sft', 'test_sft', 'train_gen', 'train_prefs', 'test_prefs'].map(
  (split) => `data/${split}-0.parquet`,
);

test.each([
  ['sft', ['train.jsonl', 'test.jsonl'], ['train.jsonl'], '*train*'],
  ['sft', ULTRA, ['data/train_sft-0.parquet'], '*train_sft*'],
  ['dpo', ULTRA, ['data/train_prefs-0.parquet'], '*train_prefs*'],
  ['sft', ['data/validation-0.parquet'], ['data/validation-0.parquet'], undefined],
  ['sft', ['README.md', 'a.jsonl', 'b.jsonl'], ['a.jsonl', 'b.jsonl'], expect.stringContaining('*.jsonl,')],
  [
    'sft',
    ['README.md', 'a.ndjson', 'b.ndjson.gz'],
    ['a.ndjson', 'b.ndjson.gz'],
    expect.stringContaining('*.ndjson.gz'),
  ],
] as const)('%s reads of %j %j', async (method, names, kept, include) => {
  const data = await read(method, ...names);
  expect([data.files.map((file) => file.path), data.include]).toEqual([kept, include]);
  expect(readFileSync(data.sample.file, 'utf8')).toBe('{}');
  expect(data.sample.share).toBeCloseTo(kept.length === 1 ? 1 : 101 / 203, 5);
});

test('fails: a key that leaves the folder of this machine is not copied', async () => {
  await expect(read('sft', '../../train.jsonl')).rejects.toThrow('--data: must have a .jsonl');
});

test('fails: no rows', async () => {
  await expect(read('sft', 'README.md')).rejects.toThrow('--data: must have a .jsonl, .json, .parquet or .arrow file');
});
