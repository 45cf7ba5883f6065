// `Run.publish` of the Python client does what `slipway publish` does: the same calls, the same card, the same refusals.
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { stripVTControlCharacters } from 'node:util';
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
import fc from 'fast-check';
import { afterAll, beforeEach, expect, test } from 'vitest';
import { cardOf } from '../../lib/control/control/card';
import type { StatusAnswer } from '../../lib/core/contracts/control';
import { type CardRequest, controlRequestSchema } from '../../lib/core/contracts/control-requests';
import { modelFacts } from '../../lib/report/card/model-card';
import { assembleReport, type RunSources } from '../../lib/report/read/assemble';
import type { LogLine } from '../../lib/report/read/log-lines';
import { mockClient } from '../support/mocked-clients';
import { PYTHON } from '../support/python';
import { runCli } from '../support/run-cli';
import { DESCRIPTOR } from '../support/runs';

const RUN = 'tiny-261121120000';
const JOB = `lab-${RUN}-a001`;
const MODEL = `s3://lab-artifacts/runs/nlp/${RUN}/output/${JOB}/output/model/`;
const PLACE = `s3://lab-data/teams/nlp/models/${RUN}/`;
const GIB = 1024 ** 3;
const BUCKETS = { dataBucket: 'lab-data', checkpointBucket: 'lab-checkpoints', artifactBucket: 'lab-artifacts' };
const ALIAS = 'arn:aws:lambda:us-west-2:111122223333:function:f:team-nlp';
const FOLDER = mkdtempSync(path.join(tmpdir(), 'slipway-publish-'));
const ENVIRONMENT = path.join(FOLDER, 'descriptor.json');
writeFileSync(ENVIRONMENT, JSON.stringify({ ...DESCRIPTOR, ...BUCKETS, controlAliasArn: ALIAS }));

const line = (minute: number, fields: object) => ({
  id: `${minute}`,
  at: new Date(Date.UTC(2026, 10, 21, 12, minute)).toISOString(),
  host: 'algo-1',
  message: `slipway ${JSON.stringify(fields)}`,
});
const STATUS = {
  ...{ ok: true as const, runId: RUN, name: 'tiny', team: 'nlp', state: 'completed', desiredState: 'run', reason: '' },
  attempts: [
    {
      ...{ trainingJobName: JOB, status: 'Completed', secondaryStatus: 'Completed', reason: '' },
      ...{ firstStep: 1, lastStep: 40, startedAt: '2026-11-21T12:00:00.000Z', endedAt: '2026-11-21T13:00:00.000Z' },
    },
  ],
  ...{ committedStep: 40, step: 40, loss: null, goodput: 0.9, spendUsd: 12.5, queuePosition: null },
  timeline: [{ at: '2026-11-21T11:59:00.000Z', what: 'run-intended', text: 'start asked', evidence: {} }],
  configuration: {
    spec: {
      code: { source: 'builtin' },
      model: { preset: 'gpt-tiny' },
      training: { steps: 40, learningRate: 0.0003 },
      data: [{ channel: 'train', s3: 's3://{dataBucket}/tokens/' }],
    },
    ...{ codeSha256: null, driverHash: 'd1', trainingImageUri: 'registry/image@sha256:1' },
  },
};
const EVENTS = [
  ...Array.from({ length: 40 }, (_, i) => line(i, { event: 'step', step: i + 1, loss: 5.5 - i / 10, tokens: i * 100 })),
  line(41, { event: 'eval', step: 40, loss: 2.5 }),
  line(2, { event: 'efa', verdict: 'efa+gdr' }),
];
const marker = { runId: RUN, attempt: 1, step: 40, tokens: 4000, data: { digest: 'da7a' }, objects: [] };

type Objects = Record<string, { bytes: number; text?: string }>;
interface World {
  objects: Objects;
  state: string;
  artifacts: string;
  regions: Record<string, string>;
  fails: Record<string, string>;
}
interface Seen {
  calls: { call: string; input: Record<string, unknown> }[];
  end: unknown;
}

const WORLD: World = {
  objects: {
    [`${MODEL}config.json`]: { bytes: 300 },
    [`${MODEL}part 1+2.safetensors`]: { bytes: 6 * GIB },
    [`s3://lab-checkpoints/runs/nlp/${RUN}/step-40/COMMITTED.json`]: { bytes: 9, text: JSON.stringify(marker) },
  },
  ...{ state: 'completed', artifacts: MODEL, regions: {}, fails: {} },
};

/** Of the control function that would answer. */
const DEPS = { environment: 'research', region: 'us-west-2', now: () => new Date('2026-11-21T14:00:00Z') };

const lambda = mockClient(LambdaClient);
const s3 = mockClient(S3Client);
const sagemaker = mockClient(SageMakerClient);
beforeEach(() => {
  for (const mock of [lambda, s3, sagemaker]) mock.reset();
});

const job = ({ artifacts }: World) => ({
  TrainingJobName: JOB,
  ResourceConfig: { InstanceType: 'ml.p4d.24xlarge', InstanceCount: 2 },
  BillableTimeInSeconds: 3600,
  ModelArtifacts: { S3ModelArtifacts: artifacts },
});
const answers = ({ state }: World) => ({
  status: { ...STATUS, state },
  logs: { ok: true, runId: RUN, trainingJobName: JOB, events: EVENTS },
});

/** What the embedded answers give to one command of the SDK; as record_publish.py answers the client. */
function answer(world: World, name: string, input: Record<string, string>): object {
  const place = `s3://${input.Bucket}/`;
  const snake = name.replace(/(?<!^)([A-Z])/g, '_$1').toLowerCase();
  if (world.fails[snake]) throw Object.assign(new Error(world.fails[snake]), { name: 'ClientError' });
  switch (name) {
    case 'GetObject': {
      const text = world.objects[`${place}${input.Key}`]?.text;
      if (text === undefined) throw Object.assign(new Error('gone'), { name: 'NoSuchKey' });
      return { Body: { transformToString: async () => text } };
    }
    case 'ListObjectsV2':
      return {
        Contents: Object.entries(world.objects)
          .filter(([uri]) => uri.startsWith(`${place}${input.Prefix}`))
          .map(([uri, { bytes }]) => ({ Key: uri.slice(place.length), Size: bytes })),
      };
    case 'DescribeTrainingJob':
      return job(world);
    case 'UploadPartCopy':
      return { CopyPartResult: { ETag: `e${input.PartNumber}` } };
    case 'HeadBucket':
      return { BucketRegion: world.regions[input.Bucket ?? ''] };
    default:
      return { UploadId: 'u1', ModelPackageArn: 'arn:package' };
  }
}

const COMMANDS = {
  s3: [
    ...[GetObjectCommand, ListObjectsV2Command, HeadBucketCommand, PutObjectCommand, CopyObjectCommand],
    ...[
      CreateMultipartUploadCommand,
      UploadPartCopyCommand,
      CompleteMultipartUploadCommand,
      AbortMultipartUploadCommand,
    ],
  ],
  sagemaker: [DescribeTrainingJobCommand, CreateModelPackageGroupCommand, CreateModelPackageCommand],
};

async function byCli(world: World, words: string[]): Promise<Seen> {
  const calls: Seen['calls'] = [];
  const answered = (command: { name: string }) => (input: Record<string, unknown>) => {
    const call = command.name.replace(/Command$/, '');
    calls.push({ call, input });
    return answer(world, call, input as Record<string, string>);
  };
  for (const command of COMMANDS.s3) s3.on(command as typeof GetObjectCommand).callsFake(answered(command));
  for (const command of COMMANDS.sagemaker)
    sagemaker.on(command as typeof DescribeTrainingJobCommand).callsFake(answered(command));
  lambda.on(InvokeCommand).callsFake(({ Payload }) => {
    const request = JSON.parse(Buffer.from(Payload).toString());
    calls.push({ call: 'Invoke', input: request });
    return { Payload: Buffer.from(JSON.stringify(answers(world)[request.action as 'status'])) as never };
  });
  const { code, stdout, stderr } = await runCli('publish', RUN, ...words, '--json', '--environment', ENVIRONMENT);
  return { calls, end: code === 0 ? JSON.parse(stdout) : [code, stdout === '' ? stderr : messages(stdout)] };
}

const messages = (refusal: string): string =>
  JSON.parse(refusal)
    .issues.map(({ message }: { message: string }) => message)
    .join('\n');

const client = spawn(PYTHON, [path.join(__dirname, 'record_publish.py'), ENVIRONMENT], {
  stdio: ['pipe', 'pipe', 'inherit'],
});
const said = createInterface({ input: client.stdout })[Symbol.asyncIterator]();
afterAll(() => client.stdin.end());

/** One publish of the client, all of them in one process; the card that it asks for is the one that control would answer. */
async function byPython(world: World, wanted: object): Promise<Seen> {
  const tell = (document: object) => client.stdin.write(`${JSON.stringify(document)}\n`);
  const more = { wanted: { ...wanted, progress: false }, job: job(world), answers: answers(world) };
  tell({ ...world, runId: RUN, ...more });
  const calls: Seen['calls'] = [];
  for (;;) {
    const one = JSON.parse((await said.next()).value);
    if (!one.call) return { calls, end: one.published ?? one.failed };
    calls.push(one);
    if (one.input.action !== 'card') continue;
    tell(cardOf(DEPS, STATUS as unknown as StatusAnswer, controlRequestSchema.parse(one.input) as CardRequest));
  }
}

const WRITES = /^(Put|Copy|Create|Complete|Abort|Upload)/;
/** Calls that change something, in their order; parts of one upload are copied at once. */
function writes({ calls }: Seen) {
  const found = calls.filter(({ call }) => WRITES.test(call)).map(plain);
  const parts = found.filter(({ call }) => call === 'UploadPartCopy');
  parts.sort((a, b) => Number(a.input.PartNumber) - Number(b.input.PartNumber));
  const first = found.findIndex(({ call }) => call === 'UploadPartCopy');
  const others = found.filter(({ call }) => call !== 'UploadPartCopy');
  return first < 0 ? others : [...others.slice(0, first), ...parts, ...others.slice(first)];
}
/** Boto3 takes a source as it is, and quotes it; the SDK takes it quoted. */
const quoted = (source: unknown) => {
  const { Bucket, Key = '' } = source as { Bucket?: string; Key?: string };
  return Bucket === undefined ? source : `${Bucket}/${Key.split('/').map(encodeURIComponent).join('/')}`;
};
const plain = ({ call, input }: Seen['calls'][number]): Seen['calls'][number] => ({
  call,
  input:
    'CopySource' in input
      ? { ...input, CopySource: quoted(input.CopySource) }
      : String(input.Key).endsWith('.json') && input.Body
        ? { ...input, Body: JSON.parse(String(input.Body)) }
        : input,
});
/** What is asked, whatever the order: the command line reads some of it at once. A job that is described twice is one question. */
const reads = ({ calls }: Seen) =>
  [
    ...new Set(
      calls
        .filter(({ call, input }) => !WRITES.test(call) && input.action !== 'card')
        .map(({ call, input }) => JSON.stringify([call, input.action ? controlRequestSchema.parse(input) : input])),
    ),
  ].sort();

const ELSEWHERE = 's3://elsewhere/models/v1/';
const published = (runId: string, more = {}) => ({
  [`${PLACE}slipway.json`]: { bytes: 1, text: JSON.stringify({ schema: 1, runId, ...more }) },
});
const REGISTRY = ['--registry', 'lab-nlp-tiny', '--inference-image', 'serve:1'];
const registry = { registry: 'lab-nlp-tiny', inference_image: 'serve:1' };

type Case = [name: string, words: string[], wanted: object, world: Partial<World>];
const DONE: Case[] = [
  ['to its own place', [], {}, {}],
  ['to another place and the registry', ['--to', ELSEWHERE, ...REGISTRY], { to: ELSEWHERE, ...registry }, {}],
  [
    'to a bucket of the region',
    ['--to', ELSEWHERE, ...REGISTRY],
    { to: ELSEWHERE, ...registry },
    { regions: { elsewhere: 'us-west-2' } },
  ],
  [
    'again, with a card that people have edited',
    [],
    {},
    { objects: { ...published(RUN), [`${PLACE}README.md`]: { bytes: 1, text: 'mine' } } },
  ],
  ['over another run', ['--overwrite'], { overwrite: true }, { objects: published('other') }],
  [
    'as one archive',
    REGISTRY,
    registry,
    { artifacts: 's3://a/x/model.tar.gz', objects: { 's3://a/x/model.tar.gz': { bytes: 5 } } },
  ],
];
const worldOf = (more: Partial<World>): World => ({
  ...WORLD,
  ...more,
  objects: { ...WORLD.objects, ...more.objects },
});

test.each(DONE)('%s: the same calls and the same answer', async (_, words, wanted, more) => {
  const world = worldOf(more);
  const [cli, python] = [await byCli(world, words), await byPython(world, wanted)];
  expect(python.end).toEqual(cli.end);
  expect(writes(python)).toEqual(writes(cli));
  expect(reads(python)).toEqual(reads(cli));
  expect(cli.end).toMatchObject({ runId: RUN });
});

const REFUSED: Case[] = [
  ['a run that goes on', [], {}, { state: 'running' }],
  ['a run without weights', [], {}, { artifacts: 's3://lab-artifacts/nothing/' }],
  ['weights of another run', [], {}, { objects: published('other') }],
  ['files that would be served too', [], {}, { objects: { [`${PLACE}x`]: { bytes: 1 }, [`${PLACE}y`]: { bytes: 1 } } }],
  ['no place', ['--to', 'here'], { to: 'here' }, {}],
  ['a group alone', ['--registry', 'a_b'], { registry: 'a_b' }, {}],
  ['an image alone', ['--inference-image', 'x'], { inference_image: 'x' }, {}],
  [
    'another region',
    ['--to', ELSEWHERE, ...REGISTRY],
    { to: ELSEWHERE, ...registry },
    { regions: { elsewhere: 'eu-west-1' } },
  ],
];

test.each(REFUSED)('fails: %s is refused in the same words, and nothing is written', async (_, words, wanted, more) => {
  const world = worldOf(more);
  const [cli, python] = [await byCli(world, words), await byPython(world, wanted)];
  const [code, text] = cli.end as [number, string];
  expect(python.end).toEqual([code, stripVTControlCharacters(text).replace(/^slipway: /, '')]);
  expect([writes(cli), writes(python)]).toEqual([[], []]);
});

test('fails: a part that cannot be copied aborts the upload, and no card is written', async () => {
  const world = worldOf({ fails: { upload_part_copy: 'SlowDown', abort_multipart_upload: 'denied' } });
  const { calls, end } = await byPython(world, {});
  expect(calls.filter(({ call }) => /^(Abort|Complete|Put)/.test(call)).map(({ call }) => call)).toEqual([
    'AbortMultipartUpload',
  ]);
  expect(end).toEqual([
    3,
    expect.stringContaining('failed, got SlowDown; its incomplete upload u1 was not aborted (denied)'),
  ]);
});

test('Ctrl-C in a large file waits for the parts under way, aborts the upload, and begins no other', () => {
  const program = `
import json, os, runpy, signal, threading
runpy.run_path(${JSON.stringify(path.join(__dirname, 'record_calls.py'))})
from slipway._weights import Place, WeightFile, copy_weights
calls, telling = [], threading.Lock()
def tell(what):
    with telling: calls.append(what)
class S3:
    def create_multipart_upload(self, **_): return {"UploadId": "u"}
    def upload_part_copy(self, PartNumber, **_):
        tell("begun")
        if PartNumber == 8: os.kill(os.getpid(), signal.SIGINT)
        tell("ended")
        return {"CopyPartResult": {"ETag": "e"}}
    def abort_multipart_upload(self, **_): tell("aborted")
    def complete_multipart_upload(self, **_): tell("completed")
signal.signal(signal.SIGINT, signal.default_int_handler)
try: copy_weights(S3(), WeightFile("a", "b", "a", 5000 * 1024**3), Place("b", "p/"))
except KeyboardInterrupt: tell("raised")
print(json.dumps(calls))`;
  const calls: string[] = JSON.parse(execFileSync(PYTHON, ['-c', program], { encoding: 'utf8' }));
  expect(calls.slice(-2)).toEqual(['aborted', 'raised']);
  const parts = calls.slice(0, -2);
  expect(parts.filter((call) => call === 'begun').length).toBe(parts.filter((call) => call === 'ended').length);
  expect(parts.length).toBeLessThan(2 * 10_000);
});

test('lines that the client leaves out change no card, whatever the log holds', async () => {
  const number = fc.constantFrom<unknown>(1, 2, 2.5, null, 'x', Number.POSITIVE_INFINITY);
  const fields = fc.record(
    {
      event: fc.constantFrom('step', 'step', 'eval', 'efa', 'gpus'),
      step: number,
      loss: number,
      tokens: number,
      verdict: fc.constantFrom('sockets', 'efa'),
    },
    { requiredKeys: ['event'] },
  );
  const text = fc.oneof(
    fields.map((each) => `slipway ${JSON.stringify(each)}`),
    fields.map((each) => `slipway ${JSON.stringify(each).replace('2.5', '1e999')}\u00a0\n`),
    fc.constantFrom(
      'slipway {"event":"step","step":NaN}',
      'slipway {',
      'slipway {"event":"step","step":1}\u001c',
      'loss 3',
    ),
  );
  const logs = fc.sample(
    fc.array(fc.record({ attempt: fc.integer({ min: 1, max: 3 }), minute: fc.nat(50), message: text }), {
      maxLength: 40,
    }),
    300,
  );
  const given = logs.map((log) =>
    log.map(({ attempt, minute, message }): LogLine => ({ attempt, message, at: line(minute, {}).at })),
  );
  const kept = await cardLines(given);
  const facts = (lines: LogLine[]) => {
    const [at, spans] = [(minute: number) => line(minute, {}).at, [0, 17, 34]];
    const attempts = spans.map((from) => ({
      ...{ ...STATUS.attempts[0], firstStep: null, lastStep: null },
      ...{ startedAt: at(from), endedAt: at(from + 16) },
    }));
    const event = (minute: number, what: string, evidence = {}) => ({ at: at(minute), what, text: '', evidence });
    const timeline = [
      event(0, 'run-intended'),
      ...spans.flatMap((from) => [
        event(from, 'job-created'),
        event(from, 'job-status', { secondaryStatus: 'Training' }),
        event(from + 15, 'checkpoint-committed', { step: 3 }),
        event(from + 16, 'attempt-ended'),
      ]),
      event(51, 'run-completed'),
    ];
    const { configuration: _, ...status } = {
      ...STATUS,
      attempts,
      timeline,
      step: null,
    } as unknown as RunSources['status'] & {
      configuration: object;
    };
    const nothing = { jobs: {}, checkpoints: {}, quotas: {}, plan: {} };
    const sources = {
      status,
      environment: 'e',
      region: 'us-west-2',
      readAt: '2026-11-21T14:00:00.000Z',
      lines: { value: lines },
      ...nothing,
    };
    return modelFacts(
      assembleReport(sources),
      { of: RUN, checkpoint: null, runs: [], notes: [] },
      {},
      { uri: PLACE, files: [] },
    );
  };
  expect(kept.map(facts)).toEqual(given.map(facts));
  expect(kept.flat().length).toBeLessThan(given.flat().length / 1.5);
});

async function cardLines(logs: LogLine[][]): Promise<LogLine[][]> {
  const program = `
import json, runpy, sys
runpy.run_path(${JSON.stringify(path.join(__dirname, 'record_calls.py'))})
from slipway._card_lines import card_lines
print(json.dumps([card_lines(log) for log in json.load(sys.stdin)]))`;
  return JSON.parse(execFileSync(PYTHON, ['-c', program], { input: JSON.stringify(logs), encoding: 'utf8' }));
}
