// Final weights of a run copied to a place of their own, with a card, over what the launcher, the buckets and SageMaker answer.
import { InvokeCommand, LambdaClient } from '@aws-sdk/client-lambda';
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CopyObjectCommand,
  CreateMultipartUploadCommand,
  GetObjectCommand,
  HeadBucketCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
  UploadPartCopyCommand,
} from '@aws-sdk/client-s3';
import {
  CreateModelPackageCommand,
  CreateModelPackageGroupCommand,
  DescribeTrainingJobCommand,
  SageMakerClient,
} from '@aws-sdk/client-sagemaker';
import { beforeEach, describe, expect, test } from 'vitest';
import { ANSWERS } from '../../../lib/core/contracts/answers';
import { labEnvironment } from '../../support/lab-environment';
import { mockClient } from '../../support/mocked-clients';
import { runCli } from '../../support/run-cli';

const lambda = mockClient(LambdaClient);
const s3 = mockClient(S3Client);
const sagemaker = mockClient(SageMakerClient);
const { environment } = labEnvironment();

const RUN = 'tiny-261121120000';
const JOB = `lab-${RUN}-a001`;
const MODEL = `runs/nlp/${RUN}/output/${JOB}/output/model/`;
const GIB = 1024 ** 3;
const PLACE = `s3://lab-data/teams/nlp/models/${RUN}/`;

/** Sizes and texts of objects, by address. */
const objects = new Map<string, { bytes: number; text?: string }>();
let state = 'completed';
let artifacts = `s3://lab-artifacts/${MODEL}`;
let image: string;
const line = (fields: object) => ({
  id: JSON.stringify(fields),
  at: '2026-11-21T12:05:00.000Z',
  host: 'algo-1',
  message: `slipway ${JSON.stringify(fields)}`,
});

beforeEach(() => {
  for (const mock of [lambda, s3, sagemaker]) mock.reset();
  state = 'completed';
  artifacts = `s3://lab-artifacts/${MODEL}`;
  image = 'registry/image@sha256:1';
  objects.clear();
  objects.set(`s3://lab-artifacts/${MODEL}config.json`, { bytes: 300 });
  objects.set(`s3://lab-artifacts/${MODEL}model.safetensors`, { bytes: 6 * GIB });
  const marker = { runId: RUN, attempt: 1, step: 40, tokens: 4000, data: { digest: 'da7a' }, objects: [] };
  objects.set(`s3://lab-checkpoints/runs/nlp/${RUN}/step-40/COMMITTED.json`, {
    bytes: 9,
    text: JSON.stringify(marker),
  });
  lambda.on(InvokeCommand).callsFake(({ Payload }) => {
    const { action } = JSON.parse(Buffer.from(Payload).toString());
    const attempt = {
      ...{ trainingJobName: JOB, status: 'Completed', secondaryStatus: 'Completed', reason: '' },
      ...{ firstStep: 1, lastStep: 40, startedAt: '2026-11-21T12:00:00.000Z', endedAt: '2026-11-21T13:00:00.000Z' },
    };
    const status = {
      ...{ ok: true, runId: RUN, name: 'tiny', team: 'nlp', state, desiredState: 'run', reason: state },
      ...{
        attempts: [attempt],
        committedStep: 40,
        step: 40,
        loss: null,
        goodput: 0.9,
        spendUsd: 12.5,
        queuePosition: null,
      },
      timeline: [],
      configuration: {
        spec: {
          code: { source: 'builtin' },
          model: { preset: 'gpt-tiny' },
          training: { steps: 40, learningRate: 0.0003 },
          data: [{ channel: 'train', s3: 's3://{dataBucket}/tokens/' }],
        },
        ...{ codeSha256: null, driverHash: 'd1', trainingImageUri: image },
      },
    };
    const events = [
      line({ event: 'step', step: 1, loss: 5.5 }),
      line({ event: 'step', step: 40, loss: 2.25, tokens: 4000 }),
      line({ event: 'eval', step: 40, loss: 2.5 }),
      line({ event: 'efa', verdict: 'efa+gdr' }),
    ];
    const answer = action === 'status' ? status : { ok: true, runId: RUN, trainingJobName: JOB, events };
    return { Payload: Buffer.from(JSON.stringify(answer)) as never };
  });
  s3.on(ListObjectsV2Command).callsFake(({ Bucket, Prefix }) => ({
    Contents: [...objects]
      .filter(([key]) => key.startsWith(`s3://${Bucket}/${Prefix}`))
      .map(([key, { bytes }]) => ({ Key: key.slice(`s3://${Bucket}/`.length), Size: bytes })),
  }));
  s3.on(GetObjectCommand).callsFake(({ Bucket, Key }) => {
    const text = objects.get(`s3://${Bucket}/${Key}`)?.text;
    if (text === undefined) throw Object.assign(new Error('gone'), { name: 'NoSuchKey' });
    return { Body: { transformToString: async () => text } };
  });
  s3.on(CreateMultipartUploadCommand).resolves({ UploadId: 'u1' });
  s3.on(AbortMultipartUploadCommand).resolves({});
  s3.on(UploadPartCopyCommand).callsFake(({ PartNumber }) => ({ CopyPartResult: { ETag: `e${PartNumber}` } }));
  sagemaker.on(DescribeTrainingJobCommand).callsFake(() => ({
    TrainingJobName: JOB,
    ResourceConfig: { InstanceType: 'ml.p4d.24xlarge', InstanceCount: 2 },
    BillableTimeInSeconds: 3600,
    ModelArtifacts: { S3ModelArtifacts: artifacts },
  }));
  sagemaker
    .on(CreateModelPackageCommand)
    .resolves({ ModelPackageArn: 'arn:aws:sagemaker:us-west-2:1:model-package/g/1' });
});

const cli = (...args: string[]) => runCli('publish', RUN, ...args, '--environment', environment);
const written = (name: string) => {
  const put = s3.commandCalls(PutObjectCommand).findLast(({ args }) => args[0].input.Key?.endsWith(name));
  return put?.args[0].input;
};
const REGISTRY = ['--registry', 'lab-nlp-tiny', '--inference-image', 'registry/serve:1'];

test('weights are copied inside S3, large ones in parts, and the record is complete last', async () => {
  const { code, stdout } = await cli('--json');
  expect(code).toBe(0);
  const document = JSON.parse(stdout);
  expect(ANSWERS.published.parse(document)).toEqual(document);
  expect(document).toMatchObject({ runId: RUN, uri: PLACE, card: `${PLACE}README.md`, modelPackageArn: null });
  const [copy] = s3.commandCalls(CopyObjectCommand);
  expect(copy?.args[0].input).toEqual({
    Bucket: 'lab-data',
    Key: `teams/nlp/models/${RUN}/config.json`,
    CopySource: `lab-artifacts/${MODEL}config.json`,
    TaggingDirective: 'REPLACE',
  });
  const ranges = s3.commandCalls(UploadPartCopyCommand).map(({ args }) => args[0].input.CopySourceRange);
  expect(ranges).toHaveLength(12);
  expect([ranges[0], ranges[11]]).toEqual(['bytes=0-536870911', `bytes=${5.5 * GIB}-${6 * GIB - 1}`]);
  const parts = s3.commandCalls(CompleteMultipartUploadCommand)[0]?.args[0].input.MultipartUpload?.Parts;
  expect(parts?.map(({ PartNumber, ETag }) => `${PartNumber} ${ETag}`)[11]).toBe('12 e12');
  expect(s3.commandCalls(PutObjectCommand).map(({ args }) => args[0].input.Key)).toEqual([
    `teams/nlp/models/${RUN}/slipway.json`,
    `teams/nlp/models/${RUN}/README.md`,
    `teams/nlp/models/${RUN}/slipway.json`,
  ]);
});

test('status and checkpoints are read once, for report, card and lineage', async () => {
  await cli();
  const asked = lambda.commandCalls(InvokeCommand).map(({ args }) => JSON.parse(String(args[0].input.Payload)).action);
  expect(asked.filter((action) => action === 'status')).toHaveLength(1);
  const listed = s3.commandCalls(ListObjectsV2Command).map(({ args }) => args[0].input.Bucket);
  expect(listed.filter((bucket) => bucket === 'lab-checkpoints')).toHaveLength(1);
  const read = s3.commandCalls(GetObjectCommand).map(({ args }) => args[0].input.Key ?? '');
  expect(read.filter((key) => key.endsWith('COMMITTED.json'))).toHaveLength(1);
});

test('a bucket of another region is found by the redirect of S3, for copies, card and record', async () => {
  const { code } = await cli('--to', 's3://company-models/llama/');
  expect(code).toBe(0);
  const toTarget = s3.calls().filter(({ args }) => (args[0].input as { Bucket?: string }).Bucket === 'company-models');
  expect(toTarget.length).toBeGreaterThan(4);
  expect(toTarget.filter(({ thisValue }) => thisValue.config.followRegionRedirects !== true)).toEqual([]);
});

test('the card says what the run says, and what is left for people', async () => {
  await cli();
  const card = String(written('README.md')?.Body);
  for (const row of [
    '| License | to be filled in: licence of these weights; licences of the base model and of the data may restrict it |',
    '| steps | 40 |',
    '| tokens | 4,000 |',
    '| training loss | 5.5 at the beginning, 2.25 at the end |',
    '| loss on the evaluation channel | 2.5 after step 40 |',
    '| GPU hours | 16 |',
    '| cost from the ledger | $12.50 |',
    '| instances | 2 x ml.p4d.24xlarge |',
    '| EFA | efa+gdr |',
    '| data train | s3://lab-data/tokens/ |',
    '| data digest | da7a |',
    '| image | registry/image@sha256:1 |',
    '| preset | gpt-tiny |',
    '| learningRate | 0.0003 |',
  ])
    expect(card).toContain(row);
  expect(card).toMatch(/^library_name: transformers$/m);
});

test('a text of a user can end neither a cell nor a row of the card', async () => {
  image = 'a|b\n| x |';
  await cli();
  expect(String(written('README.md')?.Body)).toContain('| image | a\\|b \\| x \\| |');
});

test('weights with a README of their own keep it', async () => {
  objects.set(`s3://lab-artifacts/${MODEL}README.md`, { bytes: 10 });
  const { stdout } = await cli('--registry', 'lab-nlp-tiny', '--inference-image', 'registry/serve:1');
  expect(stdout).toContain(`card: ${PLACE}MODEL_CARD.md`);
  expect(written('README.md')).toBeUndefined();
  const request = sagemaker.commandCalls(CreateModelPackageCommand)[0]?.args[0].input;
  expect(request?.ModelPackageDescription).toContain(`their card: ${PLACE}MODEL_CARD.md`);
});

describe('the model registry', () => {
  test('gets a group with the tags of the team, and a version that waits for its approval', async () => {
    const { stdout } = await cli(...REGISTRY);
    expect(stdout).toContain(
      'registered as arn:aws:sagemaker:us-west-2:1:model-package/g/1; it waits for its approval',
    );
    expect(sagemaker.commandCalls(CreateModelPackageGroupCommand)[0]?.args[0].input).toEqual({
      ModelPackageGroupName: 'lab-nlp-tiny',
      Tags: [
        { Key: 'slipway:environment', Value: 'lab' },
        { Key: 'slipway:team', Value: 'nlp' },
      ],
    });
    const { ClientToken, ...request } = sagemaker.commandCalls(CreateModelPackageCommand)[0]?.args[0].input ?? {};
    expect(request).toEqual({
      ModelPackageGroupName: 'lab-nlp-tiny',
      ModelPackageDescription: `Weights of the run ${RUN}, published by slipway; their card: ${PLACE}README.md`,
      ModelApprovalStatus: 'PendingManualApproval',
      InferenceSpecification: {
        Containers: [
          {
            Image: 'registry/serve:1',
            ModelDataSource: { S3DataSource: { S3Uri: PLACE, S3DataType: 'S3Prefix', CompressionType: 'None' } },
          },
        ],
      },
    });
    expect(ClientToken).toMatch(/^[a-f0-9]{36}$/);
  });

  test('a group that is there is used, and an archive is named as one', async () => {
    const exists = Object.assign(new Error('Model Package Group already exists: arn'), { name: 'ValidationException' });
    sagemaker.on(CreateModelPackageGroupCommand).rejects(exists);
    artifacts = 's3://lab-artifacts/x/output/model.tar.gz';
    objects.set(artifacts, { bytes: 5 });
    expect((await cli(...REGISTRY)).code).toBe(0);
    const { InferenceSpecification } = sagemaker.commandCalls(CreateModelPackageCommand)[0]?.args[0].input ?? {};
    expect(InferenceSpecification?.Containers?.[0]?.ModelDataSource?.S3DataSource).toEqual({
      S3Uri: `${PLACE}model.tar.gz`,
      S3DataType: 'S3Object',
      CompressionType: 'Gzip',
    });
  });

  test('fails: another error of the group is told, and where the weights are', async () => {
    sagemaker
      .on(CreateModelPackageGroupCommand)
      .rejects(Object.assign(new Error('no'), { name: 'AccessDeniedException' }));
    const { code, stderr } = await cli(...REGISTRY);
    expect([code, stderr]).toEqual([
      3,
      expect.stringContaining('creating the model package group lab-nlp-tiny: must be permitted'),
    ]);
    expect(stderr).toContain(`${RUN}: published at ${PLACE}, not registered; the same command registers it`);
  });
});

test.each([
  [
    ['--registry', 'a_b', '--inference-image', 'x'],
    '--registry: must be the name of a model package group, 1 to 63 letters, digits and hyphens, got a_b',
  ],
  [
    ['--registry', 'a-'.repeat(32).concat('a'), '--inference-image', 'x'],
    '--registry: must be the name of a model package group, 1 to 63 letters, digits and hyphens, got a-a-',
  ],
  [['--registry', 'good'], '--inference-image: must be the image that serves the model, got nothing'],
  [
    ['--inference-image', 'x'],
    '--registry: must be the name of a model package group, 1 to 63 letters, digits and hyphens, got nothing',
  ],
  [['--to', 'here'], '--to: must be s3://bucket/prefix/, got here'],
  [['--to', 's3://bucket'], '--to: must be s3://bucket/prefix/, got s3://bucket'],
])('fails: %j is wrong usage and copies nothing', async (args, message) => {
  const { code, stderr } = await cli(...args);
  expect([code, stderr]).toEqual([2, expect.stringContaining(message)]);
  expect(s3.commandCalls(CopyObjectCommand)).toEqual([]);
});

test('fails: a bucket of another region cannot be registered from, though S3 tells the region beside a refusal alone', async () => {
  const headers = { 'x-amz-bucket-region': 'eu-west-1' };
  s3.on(HeadBucketCommand).rejects(Object.assign(new Error('403'), { $response: { headers } }) as Error);
  const { code, stderr } = await cli('--to', 's3://elsewhere/v1/', ...REGISTRY);
  expect([code, stderr]).toEqual([
    2,
    expect.stringContaining(
      '--to: must be a bucket of us-west-2 for a version in the registry, got elsewhere of eu-west-1',
    ),
  ]);
  expect(s3.commandCalls(CopyObjectCommand)).toEqual([]);
  expect((await cli('--to', 's3://elsewhere/v1/')).code).toBe(0);
  s3.on(HeadBucketCommand).rejects(new Error('timeout'));
  expect((await cli('--to', 's3://elsewhere/v1/', ...REGISTRY)).code).toBe(0);
});

test.each(['model', 'adapter/adapter_model'])('fails: %s of an export that was cut off is no weights', async (name) => {
  objects.delete(`s3://lab-artifacts/${MODEL}model.safetensors`);
  objects.set(`s3://lab-artifacts/${MODEL}${name}.safetensors.tmp`, { bytes: 6 * GIB });
  const message = `run: must have left whole weights, got ${name}.safetensors.tmp; resume the run, which exports them again`;
  expect(await cli()).toMatchObject({ code: 1, stderr: expect.stringContaining(message) });
  expect(s3.commandCalls(PutObjectCommand)).toEqual([]);
});

test('fails: a run that goes on, and one without weights, are refused', async () => {
  state = 'running';
  expect(await cli()).toMatchObject({ code: 1, stderr: expect.stringContaining('run: must be over, got running') });
  state = 'completed';
  artifacts = 's3://lab-artifacts/nothing/';
  const refusal = JSON.parse((await cli('--json')).stdout);
  expect(refusal).toMatchObject({ ok: false, issues: [{ rule: 'publish', path: 'run' }] });
  expect(refusal.issues[0].message).toContain('must have left weights, got none at s3://lab-artifacts/nothing/');
});

describe('a place that is not empty', () => {
  const record = (runId: string, more = {}) => JSON.stringify({ schema: 1, runId, ...more });

  test('fails: files that would be served with these weights are refused, also with --overwrite', async () => {
    for (const name of ['1.safetensors', '2.safetensors', '3.safetensors', '4.safetensors', 'config.json', 'README.md'])
      objects.set(`${PLACE}${name}`, { bytes: 1 });
    const message = `--to: must contain no files that these weights do not replace, got 1.safetensors, 2.safetensors, 3.safetensors and 1 more at ${PLACE}; delete them, or name another prefix`;
    expect(await cli()).toMatchObject({ code: 2, stderr: expect.stringContaining(message) });
    objects.set(`${PLACE}slipway.json`, { bytes: 1, text: record('other') });
    expect(await cli('--overwrite')).toMatchObject({ code: 2, stderr: expect.stringContaining(message) });
    expect(s3.commandCalls(CopyObjectCommand)).toEqual([]);
    objects.set(`${PLACE}slipway.json`, { bytes: 1, text: record(RUN) });
    expect((await cli()).code).toBe(0);
  });

  test('the record of the weights that are replaced is gone before the first copy', async () => {
    objects.set(`${PLACE}slipway.json`, {
      bytes: 1,
      text: record('other', { lineage: { runs: [{ runId: 'other' }] } }),
    });
    s3.on(CopyObjectCommand).rejects(Object.assign(new Error('no'), { name: 'AccessDenied' }));
    expect((await cli('--overwrite')).code).toBe(3);
    expect(JSON.parse(String(written('slipway.json')?.Body))).toEqual({
      ...{ schema: 1, runId: RUN, job: JOB, weights: null, lineage: null },
    });
  });

  test('fails: weights of an earlier job of the run, which was resumed, stay unless they may be replaced', async () => {
    const earlier = { job: `lab-${RUN}-a000`, weights: { uri: PLACE, files: [] } };
    objects.set(`${PLACE}slipway.json`, { bytes: 1, text: record(RUN, earlier) });
    objects.set(`${PLACE}config.json`, { bytes: 1 });
    const message = `--to: must be free, got the weights of lab-${RUN}-a000 at ${PLACE}; name another prefix, or add --overwrite`;
    expect(await cli()).toMatchObject({ code: 2, stderr: expect.stringContaining(message) });
    expect(s3.commandCalls(CopyObjectCommand)).toEqual([]);
    s3.on(CopyObjectCommand).rejectsOnce(Object.assign(new Error('no'), { name: 'AccessDenied' }));
    expect((await cli('--overwrite')).code).toBe(3);
    expect(JSON.parse(String(written('slipway.json')?.Body))).toMatchObject({ job: JOB, weights: null });
    expect((await cli('--overwrite')).code).toBe(0);
  });

  test('an interrupted replacement is completed with a card of its own', async () => {
    objects.set(`${PLACE}slipway.json`, { bytes: 1, text: record(RUN, { weights: null, lineage: null }) });
    objects.set(`${PLACE}README.md`, { bytes: 1, text: 'the card of another run' });
    expect((await cli()).stderr).not.toContain('was edited');
    expect(String(written('README.md')?.Body)).toContain('| steps | 40 |');
    expect(JSON.parse(String(written('slipway.json')?.Body))).toMatchObject({ weights: { uri: PLACE } });
  });

  test('a card that was edited stays where the lineage of its record has a key without weights', async () => {
    const lineage = { runs: [{ runId: 'other', configuration: { model: { weights: null } } }] };
    const text = JSON.stringify({ schema: 1, lineage, runId: RUN, weights: { uri: PLACE, files: [] } }, null, 2);
    objects.set(`${PLACE}slipway.json`, { bytes: 1, text });
    objects.set(`${PLACE}README.md`, { bytes: 1, text: 'edited' });
    expect((await cli()).stderr).toContain('README.md: was edited and stays');
  });

  test('fails: files of the same names without a record are replaced only with --overwrite', async () => {
    objects.set(`${PLACE}config.json`, { bytes: 1 });
    const message = `--to: must be free, got the weights of an unknown run at ${PLACE}; name another prefix, or add --overwrite`;
    expect(await cli()).toMatchObject({ code: 2, stderr: expect.stringContaining(message) });
    expect(s3.commandCalls(CopyObjectCommand)).toEqual([]);
    expect((await cli('--overwrite')).code).toBe(0);
  });

  test('a card that people have edited stays, unless --overwrite is given', async () => {
    await cli();
    const card = String(written('README.md')?.Body);
    objects.set(`${PLACE}slipway.json`, { bytes: 1, text: String(written('slipway.json')?.Body) });
    objects.set(`${PLACE}README.md`, { bytes: 1, text: card });
    s3.resetHistory();
    await cli();
    expect(String(written('README.md')?.Body)).toBe(card);
    objects.set(`${PLACE}README.md`, { bytes: 1, text: card.replace('to be filled in', 'apache-2.0') });
    s3.resetHistory();
    expect((await cli()).stderr).toContain(`${PLACE}README.md: was edited and stays; --overwrite replaces it`);
    expect(written('README.md')).toBeUndefined();
    await cli('--overwrite');
    expect(String(written('README.md')?.Body)).toBe(card);
  });
});

test.each([`s3://lab-artifacts/${MODEL}`, `s3://lab-artifacts/${MODEL.slice(0, -1)}`])(
  'weights at %s are those of the folder alone',
  async (uri) => {
    artifacts = uri;
    objects.set(`s3://lab-artifacts/${MODEL.slice(0, -1)}.tar.gz`, { bytes: 1 });
    const { files } = JSON.parse((await cli('--json')).stdout);
    expect(files.map(({ name }: { name: string }) => name)).toEqual(['config.json', 'model.safetensors']);
  },
);

test('fails: weights of another run stay where they are, unless they may be replaced', async () => {
  objects.set(`${PLACE}slipway.json`, { bytes: 1, text: '{"schema": 1, "runId": "other"}' });
  const { code, stderr } = await cli();
  expect([code, stderr]).toEqual([
    2,
    expect.stringContaining(`--to: must be free, got the weights of other at ${PLACE}`),
  ]);
  expect((await cli('--overwrite')).code).toBe(0);
  objects.set(`${PLACE}slipway.json`, { bytes: 1, text: `{"schema": 1, "runId": "${RUN}"}` });
  expect((await cli()).code).toBe(0);
});

test('fails: a copy that breaks off gives its upload up', async () => {
  s3.on(UploadPartCopyCommand).rejects(Object.assign(new Error('slow down'), { name: 'SlowDown' }));
  const { code, stderr } = await cli();
  expect([code, stderr]).toEqual([
    3,
    expect.stringContaining(
      `copying s3://lab-artifacts/${MODEL}model.safetensors to ${PLACE}model.safetensors: failed, got SlowDown: slow down`,
    ),
  ]);
  expect(s3.commandCalls(AbortMultipartUploadCommand)[0]?.args[0].input.UploadId).toBe('u1');
  expect(s3.commandCalls(PutObjectCommand)).toHaveLength(1);
  expect(JSON.parse(String(written('slipway.json')?.Body))).toMatchObject({ runId: RUN, weights: null });
});

test('fails: after a part that failed none is begun, those under way are waited for, and an upload that stays is named', async () => {
  let arrived = 0;
  let abortedAfter = -1;
  s3.on(UploadPartCopyCommand).callsFake(async ({ PartNumber }) => {
    if (PartNumber === 2) throw Object.assign(new Error('slow down'), { name: 'SlowDown' });
    await new Promise((resolve) => setImmediate(resolve));
    arrived += 1;
    return { CopyPartResult: { ETag: 'e' } };
  });
  s3.on(AbortMultipartUploadCommand).callsFake(() => {
    abortedAfter = arrived;
    throw new Error('denied');
  });
  const { stderr } = await cli();
  expect([s3.commandCalls(UploadPartCopyCommand).length, abortedAfter]).toEqual([8, 7]);
  expect(stderr).toContain(
    'slow down; its incomplete upload u1 was not aborted (denied) and costs storage until it is',
  );
});

test('Ctrl-C begins no further part, aborts the upload and leaves a record without weights', async () => {
  s3.on(UploadPartCopyCommand).callsFake(({ PartNumber }) => {
    if (PartNumber === 1) process.emit('SIGINT');
    return { CopyPartResult: { ETag: 'e' } };
  });
  const { code, stdout, stderr } = await cli('--json');
  expect([code, stdout]).toEqual([130, '']);
  expect(stderr).toContain(
    `interrupted: 1 of 2 files are at ${PLACE}, without their card; the same command finishes it`,
  );
  expect(s3.commandCalls(UploadPartCopyCommand).length).toBeLessThan(12);
  expect(s3.commandCalls(AbortMultipartUploadCommand)).toHaveLength(1);
  expect(s3.commandCalls(CompleteMultipartUploadCommand)).toEqual([]);
  expect(s3.commandCalls(PutObjectCommand)).toHaveLength(1);
  expect(JSON.parse(String(written('slipway.json')?.Body))).toMatchObject({ runId: RUN, weights: null });
  expect(process.listenerCount('SIGINT')).toBe(0);
});
