// Objects of any size and number that the code of a job wrote, read by the command line of its colleagues.
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { GetObjectCommand, ListObjectsV2Command, S3Client } from '@aws-sdk/client-s3';
import { beforeEach, describe, expect, test } from 'vitest';
import { findFetched } from '../../lib/cli/hub/fetched';
import { readModel } from '../../lib/cli/hub/finetune-inputs';
import { readLineage } from '../../lib/cli/runs/lineage';
import { committedCheckpoints } from '../../lib/cli/runs/reports/committed-checkpoints';
import { parseHubSource } from '../../lib/core/config/formats/places';
import { mockClient } from '../support/mocked-clients';
import { DESCRIPTOR } from '../support/runs';

const s3 = mockClient(S3Client);
let read = 0;
const body = (text: string) => {
  const count = <T>(value: T) => {
    read += 1;
    return Promise.resolve(value);
  };
  return { transformToString: () => count(text), transformToByteArray: () => count(Buffer.from(text)) };
};
/** A bucket that has every object, each with these bytes. */
function everyObject(ContentLength: number, text = '{}') {
  s3.on(GetObjectCommand).callsFake(() => ({ ContentLength, LastModified: new Date(0), Body: body(text) }));
}
const listed = (...keys: string[]) =>
  s3.on(ListObjectsV2Command).resolves({ Contents: keys.map((Key) => ({ Key, Size: 100 })) });

beforeEach(() => {
  s3.reset();
  read = 0;
});

const folder = mkdtempSync(path.join(tmpdir(), 'slipway-large-'));
const hub = parseHubSource('hf:org/model');
if (!hub) throw new Error('must be a source');
const READERS: [string, () => Promise<unknown>][] = [
  ['the marker of a checkpoint', () => readLineage(DESCRIPTOR, 's3://bucket/weights/')],
  ['the record of a fetched repository', () => findFetched(hub, DESCRIPTOR)],
  ['the files of a model', () => readModel('s3://bucket/model/', { descriptor: DESCRIPTOR, folder })],
];

describe('an object that is too large', () => {
  test.each(READERS)('is not read where it is %s', async (_, call) => {
    listed('model/config.json', 'model/tokenizer.json', 'model/a.safetensors');
    everyObject(2e9);
    await expect(call()).rejects.toThrow(
      /: must be small enough to be read, got one that is not: it has 2000000000 bytes, more than \d+; replace it with a smaller one$/,
    );
    expect(read).toBe(0);
  });

  test('hides no other checkpoint', async () => {
    const prefix = `runs/${DESCRIPTOR.team}/r/`;
    const Contents = [1, 2].map((step) => ({
      Key: `${prefix}step-${step}/COMMITTED.json`,
      Size: step === 1 ? 2e9 : 50,
    }));
    s3.on(ListObjectsV2Command).resolves({ Contents });
    everyObject(50, JSON.stringify({ step: 2, objects: [] }));
    expect((await committedCheckpoints(DESCRIPTOR, 'r')).map(({ step }) => step)).toEqual([2]);
  });
});

test('markers of any number are read a few at a time, and no more than the 10,000 newest', async () => {
  const prefix = `runs/${DESCRIPTOR.team}/r/`;
  listed(...Array.from({ length: 10_500 }, (_, i) => `${prefix}step-${i}/COMMITTED.json`).sort());
  let [open, most] = [0, 0];
  s3.on(GetObjectCommand).callsFake(async ({ Key = '' }) => {
    open += 1;
    most = Math.max(most, open);
    await new Promise(setImmediate);
    open -= 1;
    return {
      ContentLength: 100,
      LastModified: new Date(0),
      Body: body(JSON.stringify({ step: Number(/step-(\d+)/.exec(Key)?.[1]), objects: [] })),
    };
  });
  const steps = (await committedCheckpoints(DESCRIPTOR, 'r')).map(({ step }) => step);
  expect(steps).toEqual(Array.from({ length: 10_000 }, (_, i) => i + 500));
  expect(most).toBeLessThanOrEqual(16);
});

test('of a marker, no text is kept that is longer than any of ours', async () => {
  listed(`runs/${DESCRIPTOR.team}/r/step-1/COMMITTED.json`);
  const long = 'x'.repeat(1_000_000);
  everyObject(5_000_000, JSON.stringify({ step: 1, objects: [], savedAt: long, configHash: long, runId: { a: long } }));
  expect(JSON.stringify(await committedCheckpoints(DESCRIPTOR, 'r')).length).toBeLessThan(1000);
});

test.each(['null', '[]', '{"lineage": 5}', '{"lineage": {"runs": 1, "notes": 2}}', '{"commit": 5, "files": {}}', 'x'])(
  'fails: a record that says %s is none',
  async (text) => {
    everyObject(100, text);
    await expect(readLineage(DESCRIPTOR, 's3://bucket/weights/')).rejects.toThrow('lineage: must be a folder with');
    expect(await findFetched(hub, DESCRIPTOR)).toBeUndefined();
  },
);
