import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { InvokeCommand, LambdaClient } from '@aws-sdk/client-lambda';
import { S3Client } from '@aws-sdk/client-s3';
import { SageMakerClient } from '@aws-sdk/client-sagemaker';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { ANSWERS } from '../../../lib/core/contracts/answers';
import { sectionOf, textOf } from '../../report/support';
import { labEnvironment } from '../../support/lab-environment';
import { mockClient } from '../../support/mocked-clients';
import { runCli } from '../../support/run-cli';

const lambda = mockClient(LambdaClient);
// A report does without what may not be read.
const denied = Object.assign(new Error('no'), { name: 'AccessDeniedException' });
mockClient(S3Client).onAnyCommand().rejects(denied);
mockClient(SageMakerClient).onAnyCommand().rejects(denied);
const { environment } = labEnvironment();

const asked: Record<string, unknown>[] = [];
const status = (runId: string, configuration: boolean) => ({
  ok: true,
  runId,
  name: 'tiny',
  team: 'nlp',
  state: 'completed',
  desiredState: 'run',
  reason: 'completed',
  attempts: [
    {
      trainingJobName: `lab-${runId}-a001`,
      status: 'Completed',
      secondaryStatus: 'Completed',
      firstStep: 1,
      lastStep: 2,
      reason: '',
      startedAt: '2026-11-21T12:00:00.000Z',
      endedAt: '2026-11-21T12:10:00.000Z',
    },
  ],
  committedStep: 2,
  step: 2,
  loss: null,
  goodput: 0.9,
  spendUsd: 1.5,
  queuePosition: null,
  tags: { seed: runId },
  timeline: [],
  ...(configuration && {
    configuration: {
      spec: { name: 'tiny', training: { seed: runId === 'a' ? 1 : 2 } },
      codeSha256: runId,
      driverHash: 'd',
      trainingImageUri: null,
    },
  }),
});
beforeEach(() => {
  asked.length = 0;
  lambda.on(InvokeCommand).callsFake(({ Payload }) => {
    const request = JSON.parse(Buffer.from(Payload).toString());
    asked.push(request);
    const line = (step: number, loss: number) => ({
      id: String(step),
      at: '2026-11-21T12:05:00.000Z',
      host: 'algo-1',
      message: `slipway {"event":"step","step":${step},"loss":${loss},"tokensPerSecondPerGpu":800}`,
    });
    const answers: Record<string, object> = {
      status: status(request.runId, request.configuration),
      logs: {
        ok: true,
        runId: request.runId,
        trainingJobName: 'x',
        events: [line(1, 5), line(2, request.runId === 'a' ? 4 : 3)],
      },
      list: { ok: true, runs: [status('a', false)] },
      note: { ok: true, runId: request.runId, note: request.text },
    };
    return { Payload: Buffer.from(JSON.stringify(answers[request.action])) as never };
  });
});
const cli = (...args: string[]) => runCli(...args, '--environment', environment);

describe('report --diff', () => {
  test('prints results, what differs, and losses at equal steps', async () => {
    const { code, stdout } = await cli('report', '--diff', 'a', 'b');
    expect(code).toBe(0);
    expect(stdout).toMatch(/training\.seed +1 +2/);
    expect(stdout).toMatch(/code +a +b/);
    expect(stdout).not.toMatch(/^driver/m);
    expect(stdout).toMatch(/^2 +4\.0000 +3\.0000 +-1\.0000$/m);
    expect(asked.filter(({ action }) => action === 'status').map(({ runId }) => runId)).toEqual(['a', 'b']);
  });

  test('--json is the document that is published', async () => {
    const document = JSON.parse((await cli('report', '--diff', 'a', 'b', '--json')).stdout);
    expect(ANSWERS.diff.parse(document)).toEqual(document);
    expect(document).toMatchObject({
      options: [{ path: 'training.seed', values: [1, 2] }],
      code: { isSame: false },
      lossAtSteps: [
        { step: 1, loss: [5, 5] },
        { step: 2, loss: [4, 3] },
      ],
    });
  });

  test('fails: one run twice is wrong usage', async () => {
    const { code, stderr } = await cli('report', '--diff', 'a', 'a');
    expect([code, stderr]).toEqual([
      2,
      'slipway: --diff: must be used with two runs, got a twice; name two, or leave it out',
    ]);
    expect((await cli('report', '--diff', 'a')).stderr).toContain('two runs, got one;');
    expect((await cli('report', '--diff', 'a', 'b', 'c')).stderr).toContain('two runs, got 3;');
  });
});

test('report of several runs compares them', async () => {
  const document = JSON.parse((await cli('report', 'a', 'b', '--json')).stdout);
  expect(ANSWERS.comparison.parse(document)).toEqual(document);
  expect(document.runs).toMatchObject([
    { runId: 'a', loss: 4, label: 'seed=a', tokensPerSecondPerGpu: 800 },
    { runId: 'b', loss: 3, label: 'seed=b' },
  ]);
  expect((await cli('report', 'a', 'b')).stdout).toMatch(/^b +completed +2 +3\.0000/m);
});

test('report of several runs draws them on one page, at most eight', async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'slipway-comparison-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = path.join(folder, 'comparison.html');
  expect((await cli('report', 'a', 'b', '--html', file)).code).toBe(0);
  const page = readFileSync(file, 'utf8');
  expect(textOf(sectionOf(page, 'results'))).toMatch(/a completed 2 4 800 .* seed=a b completed 2 3 800/);
  expect(sectionOf(page, 'loss')).toContain('a: 4 at step 2. b: 3 at step 2');
  expect(sectionOf(page, 'throughput')).toContain('a: 800 at step 2. b: 800 at step 2');
  const { code, stderr } = await cli('report', ...'abcdefghi', '--html', file);
  expect([code, stderr]).toEqual([2, 'slipway: --html: must be used with at most 8 runs, got 9; use fewer']);
});

describe('list', () => {
  test('sends what was asked for, and shows tags where there are some', async () => {
    const { stdout } = await cli(
      'list',
      '--state',
      'running, queued',
      '--tag',
      'seed',
      '--tag',
      'x=1',
      '--search',
      'tiny',
    );
    expect(asked).toEqual([{ action: 'list', states: ['running', 'queued'], tags: ['seed', 'x=1'], search: 'tiny' }]);
    expect(stdout.split('\n')[0]).toMatch(/tags$/);
    expect(stdout).toContain('seed=a');
  });

  test('fails: a state that there is not', async () => {
    const { code, stderr } = await cli('list', '--state', 'done');
    expect(code).toBe(2);
    expect(stderr).toContain('--state: must be of queued,');
    expect(stderr).toContain('got done;');
  });
});

test('status --note sends the text', async () => {
  const { code, stderr } = await cli('status', 'a', '--note', 'diverged at 400');
  expect([code, stderr]).toEqual([0, 'a: noted; use slipway list --search to find it']);
  expect(asked).toEqual([{ action: 'note', runId: 'a', text: 'diverged at 400' }]);
  expect((await cli('status', 'a', '--note')).code).toBe(2);
});
