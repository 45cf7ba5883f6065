import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
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

const read = (method: 'sft' | 'dpo', ...names: string[]) =>
  readSizes(method, Object.fromEntries(names.map((name, i) => [name, 100 + i])));

const readSizes = (method: 'sft' | 'dpo', sizes: Record<string, number>) => {
  const Contents = Object.entries(sizes).map(([name, Size]) => ({ Key: `rows/${name}`, Size }));
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
  [
    'sft',
    ['README.md', 'constraints.jsonl', 'rows.jsonl'],
    ['constraints.jsonl', 'rows.jsonl'],
    expect.stringContaining('*.jsonl,'),
  ],
  ['sft', ['constraints.jsonl', 'train.jsonl'], ['train.jsonl'], 'train.jsonl'],
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

test.each([
  [{ 'data-00000-of-00001.arrow': 500_000, 'dataset_info.json': 900, 'state.json': 250 }, 'data-00000-of-00001.arrow'],
  [{ 'dataset_dict.json': 40, 'train/a.arrow': 5000, 'train/state.json': 250 }, 'train/a.arrow'],
  [{ 'part-0.jsonl': 0, 'part-1.jsonl': 5000 }, 'part-1.jsonl'],
])('looks at rows, and at no description or empty file, in %j', async (sizes, sample) => {
  const data = await readSizes('sft', sizes);
  expect(data.sample.file).toBe(path.join(folder, 'data', sample));
  expect(data.sample.share).toBe(1);
});

test('fails: a file in place of its folder, and says what to name', async () => {
  s3.on(ListObjectsV2Command).resolves({});
  const place = { descriptor: DESCRIPTOR, folder };
  await expect(readData('s3://{dataBucket}/rows.jsonl', 'sft', place)).rejects.toThrow(
    'got s3://{dataBucket}/rows.jsonl with none; name the folder of the rows',
  );
});

test('files of the same rows under two names are two contents, which no run reads together', async () => {
  const files = ['rows.jsonl', 'train.jsonl'].map((name) => path.join(folder, name));
  for (const file of files) writeFileSync(file, '{"text":"a"}\n');
  const found = await Promise.all(files.map((file) => readData(file, 'sft', { descriptor: DESCRIPTOR, folder })));
  expect(new Set(found.map(({ id }) => id)).size).toBe(2);
});

test('fails: a key that leaves the folder of this machine is not copied', async () => {
  await expect(read('sft', '../../train.jsonl')).rejects.toThrow('--data: must have a .jsonl');
});

test('fails: no rows', async () => {
  await expect(read('sft', 'README.md')).rejects.toThrow('--data: must have a .jsonl, .json, .parquet or .arrow file');
});
