import { readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { InvokeCommand, LambdaClient } from '@aws-sdk/client-lambda';
import { GetObjectCommand, ListObjectsV2Command, S3Client } from '@aws-sdk/client-s3';
import {
  DescribeTrainingJobCommand,
  ListProcessingJobsCommand,
  ListTrainingJobsCommand,
  SageMakerClient,
} from '@aws-sdk/client-sagemaker';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { StatusAnswer } from '../../../lib/core/contracts/control';
import type { RunReport } from '../../../lib/report/run/run-report';
import { labEnvironment } from '../../support/lab-environment';
import { mockClient } from '../../support/mocked-clients';
import { runCli } from '../../support/run-cli';

const lambda = mockClient(LambdaClient);
const s3 = mockClient(S3Client);
const sagemaker = mockClient(SageMakerClient);

const { folder, environment } = labEnvironment();
const page = path.join(folder, 'report.html');

const RUN = 'tiny-261121120000';
const JOBS = [`lab-${RUN}-a001`, `lab-${RUN}-a002`];
const at = (minute: number) => `2026-11-21T12:${String(minute).padStart(2, '0')}:00.000Z`;

const attempt = (n: number, changes: Partial<StatusAnswer['attempts'][number]>) => ({
  trainingJobName: JOBS[n - 1] ?? '',
  status: 'Completed',
  secondaryStatus: 'Completed',
  firstStep: null,
  lastStep: null,
  reason: 'completed',
  startedAt: at(n * 10),
  endedAt: at(n * 10 + 6),
  ...changes,
});

const status: { ok: true } & StatusAnswer = {
  ok: true,
  runId: RUN,
  name: 'tiny',
  team: 'nlp',
  state: 'completed',
  desiredState: 'run',
  reason: 'completed',
  attempts: [
    attempt(1, { status: 'Failed', secondaryStatus: 'Failed', reason: 'AlgorithmError: host lost' }),
    attempt(2, {}),
  ],
  committedStep: 40,
  step: null,
  loss: null,
  goodput: 0.5,
  spendUsd: 1.25,
  queuePosition: null,
  timeline: [
    {
      at: at(5),
      what: 'attempt-intended',
      text: `attempt 1 will start from the beginning as ${JOBS[0]}`,
      evidence: {},
    },
    { at: at(5), what: 'job-created', text: 'created', evidence: {} },
    { at: at(10), what: 'first-step', text: 'step 1', evidence: { step: 1 } },
    { at: at(20), what: 'run-completed', text: 'completed', evidence: {} },
  ],
};

const RUN_FILE = `name: tiny
model: { preset: gpt-tiny }
training: { sequenceLength: 128, microBatchSize: 4, globalBatchSize: 16, steps: 40 }
code: { source: builtin }
compute: { instanceType: ml.m5.xlarge, instanceCount: 2 }
data: [{ channel: train, s3: "s3://{dataBucket}/tokens/" }]
`;

const step = (n: number, loss: number) =>
  `slipway {"event":"step","step":${n},"loss":${loss},"tokensPerSecondPerGpu":800}`;
const line = (minute: number, message: string) => ({ id: `${minute}`, at: at(minute), host: 'algo-1', message });
const LINES = [
  [
    line(11, step(1, 5)),
    line(12, 'slipway {"event":"checkpoint","step":20,"uri":"s3://x/step-20"}'),
    line(13, 'rank 0 says: slipway {"event":"step","step":99}'),
  ],
  [line(21, step(21, 4)), line(22, step(40, 3))],
];
/** What the launcher answers; the log of the first attempt in two pages. */
const logPage = ({ attempt: n, nextToken }: { attempt: number; nextToken?: string }) => {
  const all = LINES[n - 1] ?? [];
  const first = n === 1 && nextToken === undefined;
  return {
    ok: true,
    runId: RUN,
    trainingJobName: JOBS[n - 1],
    events: first ? all.slice(0, 1) : nextToken ? all.slice(1) : all,
    ...(first && { nextToken: 'next' }),
  };
};
const refusedLogs = {
  ok: false,
  issues: [{ rule: 'logs/throttled', level: 'error', path: '', message: 'must be read within the rate; try again' }],
};
const launcher =
  (logs: (request: never) => object = logPage) =>
  ({ Payload }: { Payload?: unknown }) => {
    const request = JSON.parse(Buffer.from(Payload as Uint8Array).toString()) as { action: string };
    const answer = request.action === 'logs' ? logs(request as never) : status;
    return { Payload: Buffer.from(JSON.stringify(answer)) as never };
  };

const marker = {
  schema: 1,
  step: 40,
  attempt: 2,
  savedAt: at(25),
  worldSize: 4,
  objects: [
    { key: 'a', bytes: 7 },
    { key: 'b', bytes: 9 },
  ],
};
const body = (text: string) => ({ Body: { transformToString: async () => text } }) as never;

beforeEach(() => {
  for (const mock of [lambda, s3, sagemaker]) mock.reset();
  lambda.on(InvokeCommand).callsFake(launcher());
  s3.on(ListObjectsV2Command).resolves({
    Contents: [
      { Key: `runs/nlp/${RUN}/step-40/COMMITTED.json`, Size: 300 },
      { Key: `runs/nlp/${RUN}/step-40/a`, Size: 7 },
      { Key: `runs/nlp/${RUN}/step-40/b`, Size: 9 },
      { Key: `runs/nlp/${RUN}/heartbeat.json`, Size: 60 },
    ],
  });
  s3.on(GetObjectCommand, { Bucket: 'lab-checkpoints' }).resolves(body(JSON.stringify(marker)));
  s3.on(GetObjectCommand, { Bucket: 'lab-artifacts', Key: `runs/nlp/${RUN}/run.yaml` }).resolves(body(RUN_FILE));
  sagemaker.on(DescribeTrainingJobCommand).callsFake(({ TrainingJobName }) => ({
    TrainingJobName,
    ResourceConfig: { InstanceType: 'ml.m5.xlarge', InstanceCount: 3 },
    BillableTimeInSeconds: 360,
  }));
  sagemaker.on(ListTrainingJobsCommand).resolves({ TrainingJobSummaries: [] });
  sagemaker.on(ListProcessingJobsCommand).resolves({ ProcessingJobSummaries: [] });
});

afterEach(() => rmSync(page, { force: true }));

const reported = async (...more: string[]): Promise<RunReport> => {
  const { stdout, code, stderr } = await runCli('report', RUN, '--environment', environment, '--json', ...more);
  expect({ code, stderr }).toMatchObject({ code: 0 });
  return JSON.parse(stdout) as RunReport;
};

describe('slipway report --json', () => {
  test('asks the launcher for the timeline and for what the run was launched with', async () => {
    await reported();
    const payload = lambda.commandCalls(InvokeCommand)[0]?.args[0].input.Payload as Uint8Array;
    expect(JSON.parse(Buffer.from(payload).toString())).toEqual({
      action: 'status',
      runId: RUN,
      timeline: true,
      configuration: true,
    });
  });

  test('gives each line to the attempt whose job printed it, over all pages', async () => {
    const { steps } = await reported();
    expect(steps?.map((s) => [s.attempt, s.step, s.loss])).toEqual([
      [1, 1, 5],
      [2, 21, 4],
      [2, 40, 3],
    ]);
  });

  test('knows what was saved and what is still in the bucket', async () => {
    const { checkpoints } = await reported();
    expect(checkpoints).toMatchObject([
      { step: 20, attempt: 1, inBucket: 'removed' },
      { step: 40, attempt: 2, inBucket: 'complete', objects: 2, sizeBytes: 16, worldSize: 4, savedAt: at(25) },
    ]);
  });

  test('an object of another size makes a checkpoint incomplete; a marker that is no marker makes none', async () => {
    s3.on(GetObjectCommand, { Bucket: 'lab-checkpoints' }).resolves(
      body(JSON.stringify({ ...marker, objects: [{ key: 'a', bytes: 8 }] })),
    );
    expect((await reported()).checkpoints?.[1]?.inBucket).toBe('incomplete');
    s3.on(GetObjectCommand, { Bucket: 'lab-checkpoints' }).resolves(body('{"step": 40'));
    expect((await reported()).checkpoints?.map((c) => c.step)).toEqual([20]);
  });

  test('computes cost from what the jobs really ran on', async () => {
    const { cost } = await reported();
    expect(cost?.attempts.map((a) => [a.seconds, a.instances[0]?.count])).toEqual([
      [360, 3],
      [360, 3],
    ]);
    expect(cost?.totalUsd).toBeCloseTo(2 * 0.1 * 3 * 0.23, 6);
  });

  test('says what the run was made from, by its newest complete checkpoint', async () => {
    const configuration = {
      ...{ spec: { code: { source: 'builtin' } }, codeSha256: null },
      ...{ driverHash: 'd1', trainingImageUri: 'registry/image@sha256:1' },
    };
    lambda.on(InvokeCommand).callsFake(({ Payload }) => {
      const { action } = JSON.parse(Buffer.from(Payload).toString());
      const answer = action === 'status' ? { ...status, configuration } : { ok: true, runId: RUN, events: [] };
      return { Payload: Buffer.from(JSON.stringify(answer)) as never };
    });
    const found = await reported();
    expect(found.lineage).toMatchObject({
      code: { source: 'builtin', sha256: null },
      driverHash: 'd1',
      image: 'registry/image@sha256:1',
      parents: [],
    });
    const { stdout } = await runCli('report', RUN, '--environment', environment, '--html', page);
    expect(stdout).toMatch(/^driver +d1$/m);
    expect(readFileSync(page, 'utf8')).toContain('id="lineage"');
  });

  test('carries the ledger of the timeline', async () => {
    const { ledger } = await reported();
    expect(ledger?.seconds).toMatchObject({ step: 600 });
  });
});

describe('a source that cannot be read', () => {
  const denied = Object.assign(new Error('User is not authorized'), { name: 'AccessDeniedException' });

  test.each([
    ['cost', () => sagemaker.on(DescribeTrainingJobCommand).rejects(denied), 'describing'],
    ['checkpoints', () => s3.on(ListObjectsV2Command).rejects(denied), 'listing s3://lab-checkpoints/'],
  ] as const)('leaves %s out, says why, and the rest is there', async (part, breakIt, doing) => {
    breakIt();
    const found = await reported('--html', page);
    expect(found.missing[part]).toContain(doing);
    expect(found.missing[part]).toContain('must be permitted');
    expect(found.attempts).toHaveLength(2);
    expect(readFileSync(page, 'utf8')).toContain('must be permitted');
  });

  test('leaves the steps out when the launcher refuses to read logs, and says why', async () => {
    lambda.on(InvokeCommand).callsFake(launcher(() => refusedLogs));
    expect((await reported()).missing.steps).toContain('must be read within the rate');
  });

  test('fails: the launcher does not answer', async () => {
    lambda.on(InvokeCommand).rejects(denied);
    const { code, stderr } = await runCli('report', RUN, '--environment', environment);
    expect(code).toBe(3);
    expect(stderr).toContain('calling the launcher of lab/nlp');
  });

  test('fails: the run is not one of the team', async () => {
    const refusal = { ok: false, issues: [{ rule: 'run/unknown', level: 'error', path: '', message: 'no such run' }] };
    lambda.on(InvokeCommand).resolves({ Payload: Buffer.from(JSON.stringify(refusal)) as never });
    expect((await runCli('report', RUN, '--environment', environment)).code).toBe(1);
  });
});

describe('slipway report', () => {
  test('prints a screen for people', async () => {
    const { stdout, code } = await runCli('report', RUN, '--environment', environment);
    expect(code).toBe(0);
    expect(stdout).toContain(
      'step 40   committed 40   loss 5.0000 -> 3.0000   goodput 50.0 %   at list prices $0.1380',
    );
    expect(stdout).toMatch(
      /^1 +Failed +1-1 +2026-11-21 12:10 +2026-11-21 12:16 +\$0\.0690 +AlgorithmError: host lost$/m,
    );
  });

  test('writes the page with --html and says where', async () => {
    const { stderr } = await runCli('report', RUN, '--environment', environment, '--html', page);
    expect(stderr).toContain(page);
    const written = readFileSync(page, 'utf8');
    expect(written).toContain('<title>tiny-261121120000: run report</title>');
    expect(written).toContain('AlgorithmError: host lost');
  });

  test('fails: the page cannot be written', async () => {
    const nowhere = path.join(folder, 'no', 'such', 'folder.html');
    const { code, stderr } = await runCli('report', RUN, '--environment', environment, '--html', nowhere);
    expect(code).toBe(2);
    expect(stderr).toContain('--html: must be a file that can be written');
    expect(stderr).toContain('(ENOENT); specify another file');
  });
});
