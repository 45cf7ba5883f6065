import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { BatchGetImageCommand, ECRClient } from '@aws-sdk/client-ecr';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { lock } from '../../../lib/cli/environment/lock';
import { loadImageLock, lockedBaseUri } from '../../../lib/core/config/environment/image';
import { mockClient } from '../../support/mocked-clients';

const DIGEST = `sha256:${'a'.repeat(64)}`;
const ecr = mockClient(ECRClient);
let folder: string;
const terminal = { out: () => undefined, err: () => undefined };

beforeEach(() => {
  ecr.reset();
  folder = mkdtempSync(path.join(tmpdir(), 'slipway-lock-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const environment = (more = '', regions = '{ us-west-2: {}, eu-west-1: {} }') => {
  const file = path.join(folder, 'one.yaml');
  writeFileSync(file, `name: one\nregions: ${regions}\n${more}`);
  return file;
};
const written = () => {
  const loaded = loadImageLock(readFileSync(path.join(folder, 'one.lock.yaml'), 'utf8'));
  expect(loaded.issues).toEqual([]);
  if (!loaded.value) throw new Error('no lock');
  return loaded.value;
};
const answer = (digest = DIGEST) =>
  ecr.on(BatchGetImageCommand).resolves({ images: [{ imageId: { imageDigest: digest } }] });

test('asks ECR of every region for the tag of the published base and writes its digest', async () => {
  answer();
  expect(await lock(environment(), {}, terminal)).toBe(0);
  expect(ecr.commandCalls(BatchGetImageCommand).map((call) => call.args[0].input)).toEqual([
    {
      registryId: '763104351884',
      repositoryName: 'pytorch',
      imageIds: [{ imageTag: '2.13.0-cu133-amzn2023-sagemaker' }],
    },
    {
      registryId: '763104351884',
      repositoryName: 'pytorch',
      imageIds: [{ imageTag: '2.13.0-cu133-amzn2023-sagemaker' }],
    },
  ]);
  expect(lockedBaseUri(written(), 'eu-west-1', 'pytorch-2.13')).toBe(
    `763104351884.dkr.ecr.eu-west-1.amazonaws.com/pytorch@${DIGEST}`,
  );
});

test('takes the base of cuda from --base, and remembers it for the next time', async () => {
  answer();
  const file = environment('image: { base: cuda }\n', '{ us-west-2: {} }');
  const base = '111122223333.dkr.ecr.{region}.amazonaws.com/mirror/cuda:runtime-ubuntu';
  await lock(file, { base }, terminal);
  expect(lockedBaseUri(written(), 'us-west-2', 'cuda')).toBe(
    `111122223333.dkr.ecr.us-west-2.amazonaws.com/mirror/cuda@${DIGEST}`,
  );
  const newer = `sha256:${'b'.repeat(64)}`;
  answer(newer);
  await lock(file, {}, terminal);
  expect(written().bases['us-west-2']?.cuda?.digest).toBe(newer);
});

test('keeps what is locked for other bases and regions', async () => {
  answer();
  await lock(environment('', '{ us-west-2: {} }'), {}, terminal);
  await lock(environment('image: { base: smp-2.8.0 }\n', '{ eu-west-1: {} }'), {}, terminal);
  expect(Object.keys(written().bases)).toEqual(['eu-west-1', 'us-west-2']);
});

test.each([
  ['without an image for cuda', 'image: { base: cuda }\n', {}, '--base: must be an ECR image with its tag'],
  ['with an image that is none of ECR', '', { base: 'nvidia/cuda:13' }, 'in us-west-2, got nvidia/cuda:13'],
  [
    'where no image is built',
    'image: { uri: "111122223333.dkr.ecr.us-west-2.amazonaws.com/own:1" }\n',
    {},
    'nothing to lock',
  ],
])('fails: %s', async (_, more, options, message) => {
  const file = environment(more);
  await expect(lock(file, options, terminal)).rejects.toThrow(message);
  expect(existsSync(path.join(folder, 'one.lock.yaml'))).toBe(false);
});

test('fails: a tag that is not there', async () => {
  ecr.on(BatchGetImageCommand).resolves({ failures: [{ failureReason: 'Requested image not found' }] });
  await expect(lock(environment(), {}, terminal)).rejects.toThrow(
    'pytorch:2.13.0-cu133-amzn2023-sagemaker: must exist in account 763104351884 in us-west-2, got Requested image not found',
  );
});

test('fails: a call that is not permitted says which one', async () => {
  ecr.on(BatchGetImageCommand).rejects(Object.assign(new Error('not allowed'), { name: 'AccessDeniedException' }));
  await expect(lock(environment(), {}, terminal)).rejects.toThrow('asking ECR of us-west-2 for pytorch:2.13.0');
});
