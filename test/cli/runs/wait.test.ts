import { InvokeCommand, LambdaClient } from '@aws-sdk/client-lambda';
import { expect, test, vi } from 'vitest';
import { waitForEnd } from '../../../lib/cli/runs/wait';
import { mockClient } from '../../support/mocked-clients';
import { DESCRIPTOR } from '../../support/runs';

const LAMBDA = mockClient(LambdaClient);
vi.stubEnv('SLIPWAY_POLL_SECONDS', '0');
const descriptor = {
  ...DESCRIPTOR,
  controlAliasArn: 'arn:aws:lambda:us-west-2:111122223333:function:f:team-nlp',
};

const status = (state: string) => ({
  ok: true,
  runId: 'gpt-1',
  state,
  reason: '',
  attempt: 1,
  attempts: [],
  step: 3,
  committedStep: null,
});

test('Ctrl-C ends the waiting alone: it says that the run goes on and how to follow or stop it, and prints no half answer', async () => {
  const before = process.listenerCount('SIGINT');
  const exit = vi.spyOn(process, 'exit').mockImplementation(() => undefined as never);
  const [out, err]: string[][] = [[], []];
  // The interrupt comes while the run is running; the next observation finds it at its end, so that the wait of this test ends too.
  const states = ['running', 'completed'];
  LAMBDA.on(InvokeCommand).callsFake(() => {
    const state = states.shift() ?? 'completed';
    if (state === 'completed') process.emit('SIGINT');
    return { Payload: new TextEncoder().encode(JSON.stringify(status(state))) };
  });
  const terminal = { out: (text: string) => out?.push(text), err: (text: string) => err?.push(text) };
  await waitForEnd(descriptor, 'gpt-1', {}, terminal);
  expect(exit.mock.calls).toEqual([[130]]);
  expect(err).toEqual([
    'gpt-1: running, attempt 1, step 3',
    `gpt-1: continues; slipway status gpt-1 --environment ${DESCRIPTOR.name}/${DESCRIPTOR.team} --region us-west-2 --wait to follow it, slipway stop gpt-1 --environment ${DESCRIPTOR.name}/${DESCRIPTOR.team} --region us-west-2 to stop it`,
    'gpt-1: completed, attempt 1, step 3',
  ]);
  expect(out).toEqual([]);
  expect(process.listenerCount('SIGINT')).toBe(before);
  exit.mockRestore();
});

test('with --json, a request to end prints the same in one document', async () => {
  const exit = vi.spyOn(process, 'exit').mockImplementation(() => undefined as never);
  const states = ['running', 'completed'];
  LAMBDA.on(InvokeCommand).callsFake(() => {
    const state = states.shift() ?? 'completed';
    if (state === 'completed') process.emit('SIGTERM');
    return { Payload: new TextEncoder().encode(JSON.stringify(status(state))) };
  });
  const out: string[] = [];
  const terminal = { out: (text: string) => out.push(text), err: () => undefined };
  await waitForEnd(descriptor, 'gpt-1', { json: true }, terminal);
  expect(exit.mock.calls).toEqual([[130]]);
  expect(JSON.parse(out[0] ?? '').issues).toMatchObject([
    { rule: 'command/interrupted', message: expect.stringMatching(/^gpt-1: continues; slipway status gpt-1 /) },
  ]);
  exit.mockRestore();
});

test.each([
  [
    'ServiceException',
    /^waiting for gpt-1: 10 calls in a row failed, the last with .*; the run continues, try slipway/,
    10,
  ],
  [
    'ExpiredTokenException',
    /^waiting for gpt-1: calling .* must have valid AWS credentials.*; the run continues, try/,
    1,
  ],
])('fails: %s ends the wait, with the reason', async (name, message, calls) => {
  LAMBDA.resetHistory();
  LAMBDA.on(InvokeCommand).rejects(Object.assign(new Error('not now'), { name, $metadata: {} }));
  const terminal = { out: () => undefined, err: () => undefined };
  await expect(waitForEnd(descriptor, 'gpt-1', {}, terminal)).rejects.toThrow(message);
  expect(LAMBDA.commandCalls(InvokeCommand)).toHaveLength(calls);
});
