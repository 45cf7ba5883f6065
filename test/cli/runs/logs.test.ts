import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { InvokeCommand, LambdaClient } from '@aws-sdk/client-lambda';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { LogTail } from '../../../lib/cli/runs/logs/job-logs';
import { failureText } from '../../../lib/cli/runs/run-text';
import { waitForEnd } from '../../../lib/cli/runs/wait';
import type { StatusAnswer } from '../../../lib/core/contracts/control';
import { mockClient } from '../../support/mocked-clients';
import { runCli } from '../../support/run-cli';
import { DESCRIPTOR } from '../../support/runs';

const LAMBDA = mockClient(LambdaClient);
const DESCRIBED = { ...DESCRIPTOR, controlAliasArn: 'arn:aws:lambda:us-west-2:111122223333:function:f:team-nlp' };
const FILE = path.join(mkdtempSync(path.join(tmpdir(), 'slipway-logs-')), 'environment.json');
writeFileSync(FILE, JSON.stringify(DESCRIBED));
const RUN = 'gpt-261127050000';
const START = Date.parse('2026-11-27T05:00:00Z');

interface Written {
  /** Seconds after the start. */
  at: number;
  message: string;
  host?: string;
  /** Seconds until it can be read. */
  late?: number;
}
interface Request {
  action: string;
  since?: number;
  host?: number;
  timeline?: boolean;
}

/** The log of the run, how many of its lines were sent, and the states of the run in turn, the last one for good. */
let log: Written[];
let sent: number;
let states: Partial<StatusAnswer>[];
let now: number;
/** Seconds that pass with each read of the log. */
let step: number;

function answer(request: Request): object {
  if (request.action === 'status') return statusOf((states.length > 1 ? states.shift() : states[0]) ?? {});
  const lines = log
    .map((line, index) => ({ ...line, index }))
    .filter(({ at, late = 0 }) => at + late <= now && START + 1000 * at >= (request.since ?? 0))
    .filter(({ host = 'algo-1' }) => request.host === undefined || host === `algo-${request.host}`);
  sent += lines.length;
  now += step;
  const events = lines.map(({ at, host = 'algo-1', message, index }) => ({
    id: String(index),
    at: new Date(START + 1000 * at).toISOString(),
    host,
    message,
  }));
  return { ok: true, runId: RUN, trainingJobName: 'job', events };
}

const attempt = { trainingJobName: 'job', startedAt: null, endedAt: null, firstStep: null, lastStep: null };
const statusOf = (given: Partial<StatusAnswer>) => ({
  ...{ ok: true, runId: RUN, state: 'running', reason: '', attempt: 1, attempts: [attempt], step: null },
  ...{ stepAt: null, loss: null, goodput: null, spendUsd: null, queuePosition: null, committedStep: null },
  ...given,
});

beforeEach(() => {
  [log, sent, now, step, states] = [[], 0, 0, 0, [{}]];
  LAMBDA.on(InvokeCommand).callsFake(({ Payload }) => ({
    Payload: Buffer.from(JSON.stringify(answer(JSON.parse(Buffer.from(Payload as Uint8Array).toString())))),
  }));
  vi.stubEnv('SLIPWAY_POLL_SECONDS', '0');
});
afterEach(() => {
  vi.unstubAllEnvs();
  vi.useRealTimers();
});

test('a tail reads each line once, in whatever order the hosts send them', async () => {
  const line = fc.record({ at: fc.nat(300), late: fc.nat(59), message: fc.string({ maxLength: 5 }) });
  await fc.assert(
    fc.asyncProperty(
      fc.array(line, { maxLength: 40 }),
      fc.array(fc.integer({ min: 1, max: 40 })),
      async (lines, steps) => {
        log = lines;
        now = 0;
        const tail = new LogTail(DESCRIBED, { runId: RUN });
        const read: string[] = [];
        for (const seconds of [...steps, 400]) {
          now += seconds;
          read.push(
            ...(await tail.fresh({ attempts: [attempt as never] })).map(({ at, message }) => `${at} ${message}`),
          );
        }
        const all = lines.map(({ at, message }) => `${new Date(START + 1000 * at).toISOString()} ${message}`);
        expect(read.sort()).toEqual(all.sort());
      },
    ),
    { numRuns: 50 },
  );
});

test('a tail does not read the whole log again at each observation', async () => {
  log = Array.from({ length: 3600 }, (_, at) => ({ at, message: 'step' }));
  const tail = new LogTail(DESCRIBED, { runId: RUN });
  for (now = 10; now < 3600; now += 10) await tail.fresh({ attempts: [attempt as never] });
  expect(sent).toBeLessThan(10 * log.length);
});

test('logs --follow begins with the newest line of a run that is live', async () => {
  vi.useFakeTimers({ now: START + 600_000, toFake: ['Date'] });
  now = 600;
  log = [
    { at: 10, message: 'old' },
    { at: 589, message: 'last but one' },
    { at: 590, message: 'new' },
  ];
  states = [{}, { state: 'completed' }];
  expect((await runCli('logs', RUN, '--environment', FILE, '--follow')).stdout).toBe(
    '2026-11-27T05:09:50.000Z algo-1 new',
  );
  states = [{}, { state: 'completed' }];
  expect((await runCli('logs', RUN, '--environment', FILE, '--follow', '--since', '1m')).stdout).toBe(
    '2026-11-27T05:09:49.000Z algo-1 last but one\n2026-11-27T05:09:50.000Z algo-1 new',
  );
  states = [{ state: 'completed' }];
  expect((await runCli('logs', RUN, '--environment', FILE, '--follow')).stdout.split('\n')).toHaveLength(3);
});

const FOLLOWING = ['logs --follow', 'status --chart --watch', 'status --events --follow', 'status --wait'];

/** The service fails at these calls, counted from 0. */
function failAt(fails: (call: number) => boolean): void {
  let calls = 0;
  LAMBDA.on(InvokeCommand).callsFake(({ Payload }) => {
    if (fails(calls++)) throw Object.assign(new Error('socket hang up'), { name: 'TimeoutError' });
    const request = JSON.parse(Buffer.from(Payload as Uint8Array).toString());
    const given = request.action === 'events' ? { ok: true, events: [], next: null } : answer(request);
    return { Payload: Buffer.from(JSON.stringify(given)) };
  });
}

describe.each(FOLLOWING)('%s', (following) => {
  const [verb = '', ...words] = following.split(' ');
  const run = () => runCli(verb, RUN, '--environment', FILE, ...words);

  test('goes on when the service fails now and then', async () => {
    states = [{}, {}, {}, { state: 'completed' }];
    failAt((call) => call % 3 === 2);
    expect((await run()).code).toBe(0);
  });

  test('fails: after ten failed calls in a row', async () => {
    failAt((call) => call > 1);
    const { code, stderr } = await run();
    expect(code).toBe(3);
    expect(stderr).toMatch(
      /(following|waiting for) gpt-261127050000: 10 calls in a row failed, the last with .*TimeoutError.*; .*try/,
    );
  });
});

test('logs --errors prints the first error of all hosts with the lines around it', async () => {
  now = 100;
  log = [
    ...Array.from({ length: 10 }, (_, at) => ({ at, message: `step ${at}`, host: 'algo-2' })),
    { at: 11, message: 'Traceback (most recent call last):', host: 'algo-2' },
    { at: 12, message: 'other host', host: 'algo-1' },
    ...Array.from({ length: 30 }, (_, i) => ({ at: 13 + i, message: `frame ${i}`, host: 'algo-2' })),
  ];
  const lines = (await runCli('logs', RUN, '--environment', FILE, '--errors')).stdout
    .split('\n')
    .map((line) => line.slice(25));
  expect(lines).toHaveLength(21);
  expect([lines[0], lines[5], lines[20]]).toEqual([
    'algo-2 step 5',
    'algo-2 Traceback (most recent call last):',
    'algo-2 frame 14',
  ]);
});

test('logs --errors says so when no line looks like an error, and how to see all lines', async () => {
  now = 100;
  log = [{ at: 1, message: 'step 1' }];
  const { code, stdout, stderr } = await runCli('logs', RUN, '--environment', FILE, '--errors');
  expect([code, stdout.trim()]).toEqual([0, '']);
  expect(stderr).toMatch(
    new RegExp(`^${RUN}: no line looks like an error; slipway logs ${RUN} --environment .* prints all lines`),
  );
});

const FAILED: Partial<StatusAnswer> = {
  state: 'failed',
  reason: 'exit code 1',
  attempts: [{ ...attempt, status: 'Failed', secondaryStatus: 'Failed', reason: '', endedAt: '2026-11-27T05:01:40Z' }],
  timeline: [
    { at: '', what: 'notice', text: '', evidence: { runbook: 'hang' } },
    { at: '', what: 'notice', text: '', evidence: { runbook: 'user-code' } },
  ],
};

test('the status of a failed run shows its first error, the runbook and the next commands', async () => {
  now = 100;
  log = [{ at: 90, message: 'RuntimeError: \u001b[31mboom', host: 'algo-2' }];
  states = [FAILED];
  const at = '--environment research/nlp --region us-west-2';
  const text = await failureText(DESCRIBED, statusOf(FAILED) as StatusAnswer);
  expect(text).toEqual([
    '  first error on algo-2, attempt 1:',
    '    RuntimeError: boom',
    '  next  docs/runbooks.md#user-code',
    `        slipway logs ${RUN} ${at} --errors`,
    `        slipway resume ${RUN} ${at}`,
  ]);
  expect((await runCli('status', RUN, '--environment', FILE)).stdout.split('\n').slice(-5)).toEqual(text);
  expect(await failureText(DESCRIBED, statusOf({}) as StatusAnswer)).toEqual([]);
});

test('the wait of a launch prints the output of the first host, and the states beside it', async () => {
  const said: string[] = [];
  const terminal = { out: (text: string) => said.push(`out ${text}`), err: (text: string) => said.push(`err ${text}`) };
  now = 100;
  log = [
    { at: 1, message: 'step 1' },
    { at: 2, message: 'slipway {"event":"step"}' },
    { at: 3, message: 'of another host', host: 'algo-2' },
    // Arrives after the end of the run was seen.
    { at: 99, message: 'step 99', late: 4 },
  ];
  states = [{}, {}, { state: 'completed' }];
  step = 1;
  expect(await waitForEnd(DESCRIBED, RUN, { logs: true }, terminal)).toBe(0);
  const completed = `err ${RUN}: completed, attempt 1`;
  expect(said).toEqual(['out step 1', `err ${RUN}: running, attempt 1`, 'out step 99', completed]);
  said.length = 0;
  await waitForEnd(DESCRIBED, RUN, {}, terminal);
  expect(said).toEqual([completed]);
});

test('a log that cannot be read does not end the wait', async () => {
  const err: string[] = [];
  LAMBDA.on(InvokeCommand).callsFake(({ Payload }) => {
    const { action } = JSON.parse(Buffer.from(Payload as Uint8Array).toString());
    const issues = [{ rule: 'logs/throttled', level: 'error', path: '', message: 'try again' }];
    return { Payload: Buffer.from(JSON.stringify(action === 'status' ? statusOf(FAILED) : { ok: false, issues })) };
  });
  const terminal = { out: () => undefined, err: (text: string) => err.push(text) };
  expect(await waitForEnd(DESCRIBED, RUN, { logs: true }, terminal)).toBe(4);
  expect(err.map((line) => line.trim())[1]).toBe('next  docs/runbooks.md#user-code');
});

test('--follow goes on when the rate of CloudWatch Logs is used up now and then, and a single look ends as a failed service', async () => {
  const issues = [{ rule: 'logs/throttled', level: 'error', path: '', message: 'try again' }];
  let reads = 0;
  LAMBDA.on(InvokeCommand).callsFake(({ Payload }) => {
    const request = JSON.parse(Buffer.from(Payload as Uint8Array).toString());
    const isThrottled = request.action === 'logs' && ++reads % 2 === 0;
    return { Payload: Buffer.from(JSON.stringify(isThrottled ? { ok: false, issues } : answer(request))) };
  });
  log = [{ at: 0, message: 'first' }];
  [now, states] = [1, [{}, {}, {}, { state: 'completed' }]];
  expect(await runCli('logs', RUN, '--follow', '--environment', FILE)).toMatchObject({ code: 0, stderr: '' });
  reads = 1;
  const once = await runCli('logs', RUN, '--environment', FILE);
  expect(once).toMatchObject({ code: 3, stderr: expect.stringContaining('try again') });
});

test.each([
  ['3', 2],
  ['algo-2', 0],
])('--node %s of a run on two hosts', async (node, expected) => {
  states = [{ state: 'completed', attempts: [{ ...attempt, instanceCount: 2 } as never] }];
  const { code, stderr } = await runCli('logs', RUN, '--environment', FILE, '--node', node);
  expect(code).toBe(expected);
  if (expected === 2) expect(stderr).toContain('--node: must be a host from 1 to 2, got 3; name another one');
});
