// From a checkpoint to the runs that it came from, over what the launcher and the buckets answer.
import { stripVTControlCharacters } from 'node:util';
import { InvokeCommand, LambdaClient } from '@aws-sdk/client-lambda';
import { GetObjectCommand, ListObjectsV2Command, S3Client } from '@aws-sdk/client-s3';
import { beforeEach, expect, test } from 'vitest';
import { ANSWERS } from '../../../lib/core/contracts/answers';
import { labEnvironment } from '../../support/lab-environment';
import { mockClient } from '../../support/mocked-clients';
import { runCli } from '../../support/run-cli';

const lambda = mockClient(LambdaClient);
const s3 = mockClient(S3Client);
const { environment } = labEnvironment();
const CHECKPOINTS = 's3://lab-checkpoints/runs/nlp';

/** Objects by address. */
const objects = new Map<string, string>();
const marker = (runId: string, step: number, more: object = {}) =>
  JSON.stringify({
    schema: 1,
    runId,
    attempt: 1,
    step,
    tokens: step * 100,
    savedAt: '2026-11-21T12:00:00Z',
    configHash: `config-of-${runId}`,
    codeDigest: 'c0de',
    imageUri: 'registry/image@sha256:1',
    data: { seed: 7, nextSample: 64, digest: `data-of-${runId}` },
    objects: [{ key: '0_0.distcp', bytes: 5 }],
    ...more,
  });
const checkpoint = (runId: string, step: number) => {
  objects.set(`${CHECKPOINTS}/${runId}/step-${step}/COMMITTED.json`, marker(runId, step));
  objects.set(`${CHECKPOINTS}/${runId}/step-${step}/0_0.distcp`, '12345');
};

const intended = (number: number, resumeFrom: object | null) => ({
  at: `2026-11-21T12:0${number}:00.000Z`,
  what: 'attempt-intended',
  text: `attempt ${number}`,
  evidence: { resumeFrom, passedOver: [], rung: '1' },
});
/** What the launcher answers, by run. */
const RUNS: Record<string, { spec: object; timeline?: object[] }> = {
  tuned: {
    spec: {
      code: { source: 'builtin' },
      data: [{ channel: 'train', s3: 's3://{dataBucket}/chat/' }],
      checkpoints: { startFrom: 'base' },
    },
    timeline: [
      intended(1, { uri: `${CHECKPOINTS}/base/step-20/`, step: 20, attempt: 1 }),
      intended(2, { uri: `${CHECKPOINTS}/tuned/step-30/`, step: 30, attempt: 1 }),
    ],
  },
  base: {
    spec: {
      code: { source: './src' },
      data: [{ channel: 'train', fsxLustre: { fileSystemId: 'fs-0123', directoryPath: '/fsx/web' } }],
      model: { weights: 's3://elsewhere/llama/' },
    },
  },
};

beforeEach(() => {
  objects.clear();
  checkpoint('tuned', 30);
  checkpoint('tuned', 40);
  checkpoint('base', 20);
  lambda.on(InvokeCommand).callsFake(({ Payload }) => {
    const { runId } = JSON.parse(Buffer.from(Payload).toString());
    const run = RUNS[runId];
    const answer = run
      ? {
          ...{
            ok: true,
            runId,
            name: runId,
            team: 'nlp',
            state: 'completed',
            attempts: [],
            timeline: run.timeline ?? [],
          },
          configuration: { spec: run.spec, codeSha256: null, driverHash: 'd1', trainingImageUri: null },
        }
      : { ok: false, issues: [{ rule: 'x', level: 'error', path: 'runId', message: `runId: no run ${runId}` }] };
    return { Payload: Buffer.from(JSON.stringify(answer)) as never };
  });
  s3.on(ListObjectsV2Command).callsFake(({ Bucket, Prefix }) => ({
    Contents: [...objects]
      .filter(([key]) => key.startsWith(`s3://${Bucket}/${Prefix}`))
      .map(([key, text]) => ({ Key: key.slice(`s3://${Bucket}/`.length), Size: text.length })),
  }));
  s3.on(GetObjectCommand).callsFake(({ Bucket, Key }) => {
    const text = objects.get(`s3://${Bucket}/${Key}`);
    if (text === undefined) throw Object.assign(new Error('gone'), { name: 'NoSuchKey' });
    return { Body: { transformToString: async () => text } };
  });
});
const cli = (...args: string[]) => runCli('status', '--lineage', ...args, '--environment', environment);

test('a run leads to its newest complete checkpoint and to the run that it began from', async () => {
  objects.delete(`${CHECKPOINTS}/tuned/step-40/0_0.distcp`);
  const document = JSON.parse((await cli('tuned', '--json')).stdout);
  expect(ANSWERS.lineage.parse(document)).toEqual(document);
  expect(document.checkpoint).toMatchObject({ step: 30, dataDigest: 'data-of-tuned', seed: 7, nextSample: 64 });
  expect(document.runs).toMatchObject([
    {
      runId: 'tuned',
      configHash: 'config-of-tuned',
      code: { source: 'builtin', sha256: 'c0de' },
      data: {
        channels: [{ channel: 'train', source: 's3://lab-data/chat/' }],
        digest: 'data-of-tuned',
      },
      // Attempt 2 began after the checkpoint was written; `startFrom` is what attempt 1 began from.
      parents: [
        { kind: 'checkpoint', source: `${CHECKPOINTS}/base/step-20/`, runId: 'base', step: 20, by: 'attempt 1' },
      ],
    },
    {
      runId: 'base',
      configHash: 'config-of-base',
      data: { channels: [{ channel: 'train', source: 'fsxLustre fs-0123/fsx/web' }], digest: 'data-of-base' },
      parents: [{ kind: 'weights', source: 's3://elsewhere/llama/', runId: null, by: 'model.weights' }],
    },
  ]);
  expect(document.notes).toEqual([]);
});

test('a checkpoint leads to the run that wrote it, also when its folder was copied', async () => {
  objects.set('s3://elsewhere/kept/COMMITTED.json', marker('base', 10));
  const document = JSON.parse((await cli('s3://elsewhere/kept', '--json')).stdout);
  expect(document.checkpoint).toMatchObject({ uri: 's3://elsewhere/kept/', step: 10 });
  expect(document.runs.map(({ runId }: { runId: string }) => runId)).toEqual(['base']);
});

test('fails: a checkpoint of the environment that names another run leads to the run in whose folder it is', async () => {
  objects.set(`${CHECKPOINTS}/tuned/step-30/COMMITTED.json`, marker('base', 30));
  const document = JSON.parse((await cli(`${CHECKPOINTS}/tuned/step-30/`, '--json')).stdout);
  expect(document.runs[0]).toMatchObject({ runId: 'tuned', claims: ['run base'] });
});

test('published weights lead to their run', async () => {
  const lineage = JSON.parse((await cli('base', '--json')).stdout);
  objects.set('s3://elsewhere/model/slipway.json', JSON.stringify({ lineage }));
  const stdout = stripVTControlCharacters((await cli('s3://elsewhere/model/')).stdout);
  expect(stdout).toMatch(/^base {2}completed$/m);
  expect(stdout).toMatch(/^data digest +data-of-base$/m);
  expect(stdout).toMatch(/^from +s3:\/\/elsewhere\/llama\/ \(model\.weights\)$/m);
});

test('published weights of a run that is gone have the lineage that lies beside them', async () => {
  objects.set(
    's3://elsewhere/model/slipway.json',
    JSON.stringify({ lineage: JSON.parse((await cli('tuned', '--json')).stdout) }),
  );
  const { tuned } = RUNS;
  delete RUNS.tuned;
  const { code, stdout } = await cli('s3://elsewhere/model/', '--json');
  if (tuned) RUNS.tuned = tuned;
  const document = JSON.parse(stdout);
  expect(ANSWERS.lineage.parse(document)).toEqual(document);
  expect([code, document.of, document.runs.map(({ runId }: { runId: string }) => runId)]).toEqual([
    ...[0, 's3://elsewhere/model/', ['tuned', 'base']],
  ]);
  expect(document.notes).toEqual(['tuned: shown as in slipway.json: runId: no run tuned']);
});

test('runs that began from each other are each shown once', async () => {
  RUNS.a = { spec: { checkpoints: { startFrom: 'b' } } };
  RUNS.b = { spec: { checkpoints: { startFrom: 'a' } } };
  const { runs } = JSON.parse((await cli('a', '--json')).stdout);
  delete RUNS.a;
  delete RUNS.b;
  expect(runs.map(({ runId }: { runId: string }) => runId)).toEqual(['a', 'b']);
});

test('a run of which the launcher does not know the parent says so', async () => {
  RUNS.orphan = { spec: { checkpoints: { startFrom: 'gone' } } };
  const { code, stdout } = await cli('orphan');
  delete RUNS.orphan;
  expect(code).toBe(0);
  expect(stdout).toContain('not known: gone: not followed: runId: no run gone');
  expect(stdout).toContain('orphan: has no complete checkpoint');
});

test.each([
  ['s3://elsewhere/none/', 'lineage: must be a folder with COMMITTED.json of a run or with slipway.json, got'],
  ['s3://UPPER', 'lineage: must be a run id or s3://bucket/prefix/, got s3://UPPER; check the URI'],
])('fails: %s is wrong usage', async (target, message) => {
  const { code, stderr } = await cli(target);
  expect([code, stderr]).toEqual([2, expect.stringContaining(message)]);
});

test('fails: a run that there is not', async () => {
  const { code, stderr } = await cli('nobody');
  expect([code, stderr]).toEqual([1, expect.stringContaining('no run nobody')]);
});
