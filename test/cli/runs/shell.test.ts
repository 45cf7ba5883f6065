import { chmodSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { InvokeCommand, LambdaClient } from '@aws-sdk/client-lambda';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { isNewer } from '../../../lib/cli/runs/shell';
import { labEnvironment } from '../../support/lab-environment';
import { mockClient } from '../../support/mocked-clients';
import { runCli } from '../../support/run-cli';

const lambda = mockClient(LambdaClient);
const { folder, environment } = labEnvironment();
const seen = path.join(folder, 'seen');
const RUN = 'tiny-261121120000';
const JOB = `lab-${RUN}-a001`;
const SESSION = { SessionId: 'nlp-1', StreamUrl: 'wss://x', TokenValue: 'secret' };
const REQUEST = { Target: `sagemaker-training-job:${JOB}_algo-2`, Reason: 'slipway shell' };

/** A stand-in for the plugin that writes down how it was called, one argument a line, and then the session. */
function plugin(version: string | undefined, exit = 0): void {
  const file = path.join(folder, 'session-manager-plugin');
  rmSync(file, { force: true });
  rmSync(seen, { force: true });
  if (version === undefined) return;
  writeFileSync(
    file,
    `#!/bin/sh\nif [ "$1" = --version ]; then echo ${version}; exit 0; fi\n` +
      `for a in "$@"; do echo "$a"; done > ${seen}\nprintenv AWS_SSM_START_SESSION_RESPONSE >> ${seen}\nexit ${exit}\n`,
  );
  chmodSync(file, 0o755);
}

const answers = (...sessions: (typeof SESSION | null)[]) => {
  let calls = 0;
  lambda.on(InvokeCommand).callsFake(() => {
    const session = sessions[Math.min(calls++, sessions.length - 1)];
    const answer = { ok: true, runId: RUN, trainingJobName: JOB, request: REQUEST, session };
    return { Payload: Buffer.from(JSON.stringify(answer)) };
  });
};
const payloads = () =>
  lambda
    .commandCalls(InvokeCommand)
    .map(({ args }) => JSON.parse(Buffer.from((args[0].input.Payload as Buffer) ?? '').toString()));
const open = (...more: string[]) => runCli('shell', RUN, '--environment', environment, ...more);

beforeEach(() => {
  vi.stubEnv('PATH', `${folder}:/usr/bin:/bin`);
  vi.stubEnv('AWS_PROFILE', 'research');
  vi.stubEnv('AWS_ENDPOINT_URL', undefined);
  vi.stubEnv('SLIPWAY_POLL_SECONDS', '0');
  lambda.reset();
  plugin('1.2.707.0');
  answers(SESSION);
});
afterEach(() => vi.unstubAllEnvs());

describe('a shell', () => {
  test('the plugin is started as the AWS CLI starts it, with the token in a variable', async () => {
    const { code, stdout } = await open('--node', 'algo-2');
    expect([code, stdout]).toEqual([0, '']);
    // awscli 1.44.5, customizations/sessionmanager.py: name of the variable, region, operation, profile, request, endpoint.
    expect(readFileSync(seen, 'utf8').trim().split('\n')).toEqual([
      'AWS_SSM_START_SESSION_RESPONSE',
      'us-west-2',
      'StartSession',
      'research',
      JSON.stringify(REQUEST),
      'https://ssm.us-west-2.amazonaws.com',
      JSON.stringify(SESSION),
    ]);
    expect(payloads()).toEqual([{ action: 'shell', runId: RUN, host: 2 }]);
  });

  test('what follows -- is the command, options and all', async () => {
    await open('--', 'nvidia-smi', '--query-gpu=name', '--json');
    expect(payloads()).toEqual([
      { action: 'shell', runId: RUN, host: 1, command: 'nvidia-smi --query-gpu=name --json' },
    ]);
  });

  test('it asks again until the host is connected', async () => {
    answers(null, null, SESSION);
    const { code, stderr } = await open();
    expect([code, payloads().length]).toEqual([0, 3]);
    expect(stderr).toBe(`waiting until algo-1 of ${JOB} accepts sessions`);
  });
});

describe('fails', () => {
  test('without the plugin nothing is called, and the message says where to get it', async () => {
    plugin(undefined);
    const { code, stderr } = await open();
    expect(code).toBe(1);
    expect(stderr).toContain('session-manager-plugin: must be installed');
    expect(stderr).toContain('session-manager-working-with-install-plugin.html');
    expect(payloads()).toEqual([]);
  });

  test('a plugin that would show the token in its arguments', async () => {
    plugin('1.2.497.0');
    const { code, stderr } = await open();
    expect([code, existsSync(seen)]).toEqual([1, false]);
    expect(stderr).toContain('newer than 1.2.497.0, got 1.2.497.0');
  });

  test('a session that breaks is a failed service call', async () => {
    plugin('1.2.707.0', 255);
    expect((await open()).code).toBe(3);
  });

  test('a host that never connects', async () => {
    answers(null);
    const { code, stderr } = await open();
    expect(code).toBe(3);
    expect(stderr).toContain('got none after 3 minutes');
  });

  test.each([
    [['--node', '0'], '--node: must be a host, got'],
    [['--node', 'node-2'], '--node: must be a host, got'],
    [['--json'], '--json: must not be given to shell'],
    [['--nope'], '--nope: must be an option of slipway shell'],
  ])('wrong usage: %j', async (args, message) => {
    const { code, stdout, stderr } = await open(...args);
    expect(code).toBe(2);
    expect(stdout + stderr).toContain(message);
  });
});

test.each([
  ['1.2.498.0', true],
  ['1.2.497.0', false],
  ['1.2.497', false],
  ['1.3', true],
  ['2', true],
  ['1.1.999.9', false],
  ['dev', false],
])('version %s is new enough: %s', (version, is) => {
  expect(isNewer(version, '1.2.497.0')).toBe(is);
});
