import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { GetObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { afterAll, beforeEach, expect, test } from 'vitest';
import { withS3Config } from '../../../lib/cli/hub/fetched';
import { readGiven, readRunFile } from '../../../lib/cli/inputs';
import { mockClient } from '../../support/mocked-clients';
import { DESCRIPTOR } from '../../support/runs';

const FOLDER = mkdtempSync(path.join(tmpdir(), 'slipway-s3-config-'));
afterAll(() => rmSync(FOLDER, { recursive: true, force: true }));
const FILE = path.join(FOLDER, 'run.yaml');
const ENVIRONMENT = path.join(FOLDER, 'descriptor.json');
writeFileSync(ENVIRONMENT, JSON.stringify(DESCRIPTOR));
writeFileSync(
  FILE,
  'name: a\nmodel: { config: "s3://{dataBucket}/m/config.json" }\ncode: { source: builtin }\ncompute: { instanceType: ml.p5.48xlarge }\n',
);
const CONFIG = {
  model_type: 'llama',
  hidden_size: 64,
  intermediate_size: 128,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  vocab_size: 257,
};

const s3 = mockClient(S3Client);
beforeEach(() => s3.reset());

test('a config.json in S3 is read from the bucket of the environment', async () => {
  s3.on(GetObjectCommand, { Bucket: DESCRIPTOR.dataBucket, Key: 'm/config.json' }).resolves({
    Body: { transformToString: async () => JSON.stringify(CONFIG) } as never,
  });
  const options = await withS3Config(readGiven(FILE), { environment: ENVIRONMENT });
  const { loaded } = readRunFile(readGiven(FILE), options);
  expect(loaded.value?.model?.architecture).toMatchObject({ layers: 2, hiddenSize: 64, vocabularySize: 257 });
});

test('without an environment nothing is asked of S3, and the name stays', async () => {
  const options = await withS3Config(readGiven(FILE), {});
  expect(readRunFile(readGiven(FILE), options).loaded.value?.model).toBeUndefined();
  expect(s3.calls()).toEqual([]);
});
