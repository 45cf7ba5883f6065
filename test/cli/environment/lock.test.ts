import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { BatchGetImageCommand, ECRClient, GetDownloadUrlForLayerCommand } from '@aws-sdk/client-ecr';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { lock } from '../../../lib/cli/environment/lock';
import { loadImageLock, lockedBaseUri } from '../../../lib/core/config/environment/image';
import { mockClient } from '../../support/mocked-clients';

const DIGEST = `sha256:${'a'.repeat(64)}`;
const ecr = mockClient(ECRClient);
let folder: string;
let said: string[];
const terminal = { out: (text: string) => said.push(text), err: (text: string) => said.push(text) } as never;

beforeEach(() => {
  ecr.reset();
  said = [];
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

describe('a newer digest', () => {
  const NEWER = `sha256:${'b'.repeat(64)}`;
  const [OLD_CONFIG, NEW_CONFIG] = ['c', 'd'].map((letter) => `sha256:${letter.repeat(64)}`);
  const configs: Record<string, string[]> = {
    old: ['CUDA_VERSION=12.8.1', 'NCCL_VERSION=2.27.3', 'PYTORCH_VERSION=2.13.0', 'PATH=/usr/bin'],
    new: ['CUDA_VERSION=13.0.0', 'NCCL_VERSION=2.27.3'],
  };
  const history = [
    { created_by: 'ARG PYTORCH_VERSION' },
    { created_by: 'RUN |2 PYTORCH_VERSION=2.13.1 EFA_VERSION=1.44.0 /bin/sh -c pip install torch # buildkit' },
  ];
  const manifestOf = (imageDigest: string, manifest: object) =>
    ecr
      .on(BatchGetImageCommand, { imageIds: [{ imageDigest }] })
      .resolves({ images: [{ imageManifest: JSON.stringify(manifest) }] });

  beforeEach(async () => {
    answer();
    await lock(environment('', '{ us-west-2: {} }'), {}, terminal);
    answer(NEWER);
    manifestOf(DIGEST, { config: { digest: OLD_CONFIG } });
    // The newer one is an index over architectures.
    const amd64 = `sha256:${'e'.repeat(64)}`;
    manifestOf(NEWER, { manifests: [{ digest: amd64, platform: { architecture: 'amd64' } }] });
    manifestOf(amd64, { config: { digest: NEW_CONFIG } });
    ecr.on(GetDownloadUrlForLayerCommand, { layerDigest: OLD_CONFIG }).resolves({ downloadUrl: 'https://s3/old' });
    ecr.on(GetDownloadUrlForLayerCommand, { layerDigest: NEW_CONFIG }).resolves({ downloadUrl: 'https://s3/new' });
    vi.stubGlobal('fetch', async (url: string) =>
      Response.json({ config: { Env: configs[url.split('/').pop() ?? ''] }, ...(url.endsWith('new') && { history }) }),
    );
    said = [];
  });
  afterEach(() => void vi.unstubAllGlobals());

  test('is written, and the versions of both images stand beside each other', async () => {
    expect(await lock(environment('', '{ us-west-2: {} }'), {}, terminal)).toBe(0);
    expect(written().bases['us-west-2']?.['pytorch-2.13']?.digest).toBe(NEWER);
    expect(said).toContain(
      'us-west-2 pytorch-2.13: was sha256:aaaaaaaaaaaa; CUDA 12.8.1 -> 13.0.0, NCCL 2.27.3 (same), EFA not specified -> 1.44.0, PyTorch 2.13.0 -> 2.13.1',
    );
  });

  test('is written also where the old image is gone, which is said', async () => {
    ecr
      .on(BatchGetImageCommand, { imageIds: [{ imageDigest: DIGEST }] })
      .resolves({ failures: [{ failureReason: 'Requested image not found' }] });
    await lock(environment('', '{ us-west-2: {} }'), { json: true }, terminal);
    expect(JSON.parse(said.join('')).changes).toEqual([
      {
        region: 'us-west-2',
        base: 'pytorch-2.13',
        from: DIGEST,
        to: NEWER,
        what: 'the changes could not be read: Requested image not found',
      },
    ]);
  });

  test('an unchanged one says nothing of versions', async () => {
    answer();
    await lock(environment('', '{ us-west-2: {} }'), {}, terminal);
    expect(said.filter((line) => line.includes('was sha256'))).toEqual([]);
  });
});
