import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { InvokeCommand, LambdaClient } from '@aws-sdk/client-lambda';
import { beforeEach, expect, test } from 'vitest';
import { progressText } from '../../../lib/cli/runs/run-text';
import { ANSWERS } from '../../../lib/core/contracts/answers';
import type { StatusAnswer } from '../../../lib/core/contracts/control';
import { mockClient } from '../../support/mocked-clients';
import { runCli } from '../../support/run-cli';
import { DESCRIPTOR } from '../../support/runs';

const LAMBDA = mockClient(LambdaClient);
const FILE = path.join(mkdtempSync(path.join(tmpdir(), 'slipway-metrics-')), 'descriptor.json');
writeFileSync(
  FILE,
  JSON.stringify({ ...DESCRIPTOR, controlAliasArn: 'arn:aws:lambda:us-west-2:111122223333:function:f:team-nlp' }),
);

const run = (runId: string, state: string) => ({
  runId,
  name: 'a',
  team: 'nlp',
  state,
  desiredState: 'run',
  reason: '',
  attempt: 1,
  attempts: [
    {
      trainingJobName: 'j',
      status: 'InProgress',
      secondaryStatus: 'Training',
      firstStep: 1,
      lastStep: 3,
      reason: '',
      startedAt: null,
      endedAt: null,
    },
  ],
  committedStep: null,
  step: 3,
  loss: 1,
  goodput: 0.9,
  progressPercent: 12.5,
  etaAt: '2026-11-23T04:10:00.000Z',
  etaInterval80: ['2026-11-23T03:00:00.000Z', '2026-11-23T06:00:00.000Z'],
  spendUsd: 2,
  queuePosition: null,
});
const step = (n: number) => ({
  id: `e${n}`,
  at: `2026-11-22T10:00:0${n}.000Z`,
  host: 'algo-1',
  message: `slipway ${JSON.stringify({ event: 'step', step: n, loss: 3 / n, tokensPerSecondPerGpu: 1000 })}`,
});
const gpus = (n: number, hosts: object) => ({
  id: `g${n}`,
  at: `2026-11-22T10:00:0${n}.500Z`,
  host: 'algo-1',
  message: `slipway ${JSON.stringify({ event: 'gpus', hosts })}`,
});
const RUNS = [run('a-261121120000', 'running'), run('b-261121120000', 'completed')];
let gpuLines: object[] = [];

beforeEach(() => {
  gpuLines = [];
  LAMBDA.reset();
  LAMBDA.on(InvokeCommand).callsFake(({ Payload }) => {
    const asked = JSON.parse(Buffer.from(Payload).toString());
    const answers: Record<string, object> = {
      list: { runs: RUNS.filter(({ state }) => asked.states?.includes(state) ?? true) },
      status: run(asked.runId, 'running'),
      logs: { runId: asked.runId, trainingJobName: 'j', events: [...[1, 2, 3].map(step), ...gpuLines] },
    };
    return { Payload: Buffer.from(JSON.stringify({ ok: true, ...answers[asked.action] })) };
  });
});

test('status --chart draws loss and speed, and prints the newest steps', async () => {
  const { code, stdout } = await runCli('status', 'a-261121120000', '--chart', '--environment', FILE);
  expect(code).toBe(0);
  expect(stdout).toContain('loss             █▃▁  3.0000 to 1.0000');
  expect(stdout.split('\n').every((line) => line.length <= 80)).toBe(true);
});

test('status --chart --json prints one object a line', async () => {
  const { stdout } = await runCli('status', 'a-261121120000', '--chart', '--environment', FILE, '--json');
  expect(stdout.split('\n').map((line) => JSON.parse(line))).toMatchObject([
    { step: 1, loss: 3 },
    { step: 2 },
    { step: 3 },
  ]);
});

test('status --chart shows the newest observation of the GPUs of each host, the least busy first, and says nothing of GPUs that nobody told of', async () => {
  const use = (utilizationPercent: number | null) => ({ utilizationPercent, memoryGiB: 70.5, totalGiB: 79.6 });
  gpuLines = [gpus(1, { 'algo-1': use(10), 'algo-2': use(41) }), gpus(2, { 'algo-1': use(96.5) })];
  const { stdout } = await runCli('status', 'a-261121120000', '--chart', '--environment', FILE);
  expect(stdout.split('\n').slice(-3)).toEqual([
    'host    GPUs busy  memory of the fullest',
    'algo-2  41 %       70.5 of 79.6 GiB',
    'algo-1  97 %       70.5 of 79.6 GiB',
  ]);
  const rows = (await runCli('status', 'a-261121120000', '--chart', '--environment', FILE, '--json')).stdout
    .split('\n')
    .map((row) => JSON.parse(row));
  expect(rows.map(({ step: number }) => number ?? 'gpus')).toEqual([1, 'gpus', 2, 'gpus', 3]);
  expect(rows[3]).toEqual({ attempt: 1, at: '2026-11-22T10:00:02.500Z', gpus: { 'algo-1': use(96.5) } });
  expect(ANSWERS.gpuLine.parse(rows[3])).toEqual(rows[3]);
  gpuLines = [];
  expect((await runCli('status', 'a-261121120000', '--chart', '--environment', FILE)).stdout).not.toContain('GPUs');
});

test('list --active shows runs that are not over, with progress and end', async () => {
  const { stdout } = await runCli('list', '--active', '--environment', FILE);
  expect(stdout).toContain('a-261121120000');
  expect(stdout).toContain('2026-11-23 04:10');
  expect(stdout).not.toContain('b-261121120000');
  const { runs } = JSON.parse((await runCli('list', '--active', '--environment', FILE, '--json')).stdout);
  expect(ANSWERS.runList.parse({ runs }).runs).toHaveLength(1);
});

test('list --active says so when more runs may be live than an answer holds', async () => {
  const runs = Array.from({ length: 200 }, (_, i) => run(`r${i}-261121120000`, 'queued'));
  LAMBDA.on(InvokeCommand).resolves({ Payload: Buffer.from(JSON.stringify({ ok: true, runs, ...runs[0] })) as never });
  const { stderr } = await runCli('list', '--active', '--environment', FILE);
  expect(stderr).toContain('only the newest 200 runs are listed');
});

test('list --events asks for each page since the same time', async () => {
  const asked: { since?: string; after?: string }[] = [];
  LAMBDA.on(InvokeCommand).callsFake(({ Payload }) => {
    asked.push(JSON.parse(Buffer.from(Payload).toString()));
    const next = asked.length < 3 ? `2026-11-22T10:00:00.000Z#${asked.length}` : null;
    return { Payload: Buffer.from(JSON.stringify({ ok: true, events: [], next })) };
  });
  await runCli('list', '--events', '--since', '6h', '--environment', FILE);
  expect(asked.map(({ after }) => after?.slice(-2))).toEqual([undefined, '#1', '#2']);
  expect(new Set(asked.map(({ since }) => since)).size).toBe(1);
  expect(asked[0]?.since).toMatch(/Z$/);
});

test.each<[number | undefined, string]>([
  [undefined, '06:00)'],
  [2, '06:00)'],
  [0, '06:00, assuming the usual interruption rate: it was not interrupted yet)'],
])('an interval after %s interruptions says what it rests on', (interruptions, end) => {
  const interval: [string, string] = ['2026-11-23T03:00:00.000Z', '2026-11-23T06:00:00.000Z'];
  const run = { progressPercent: 12.5, etaAt: '2026-11-23T04:10:00.000Z', etaInterval80: interval, interruptions };
  expect(progressText(run as StatusAnswer).endsWith(`to 2026-11-23 ${end}`)).toBe(true);
});

test('status says how far the run is and when it will be done', async () => {
  const { stdout } = await runCli('status', 'a-261121120000', '--environment', FILE);
  expect(stdout).toContain(
    '12.5 %, done about 2026-11-23 04:10 UTC (80 % interval 2026-11-23 03:00 to 2026-11-23 06:00)',
  );
});

test.each([
  ['status', 'x', '--nope'],
  ['status', '--chart'],
  ['list', '--nope'],
])('fails: %s %s %s is wrong usage', async (...args) => {
  expect((await runCli(...args.filter((arg) => arg !== undefined))).code).toBe(2);
});
