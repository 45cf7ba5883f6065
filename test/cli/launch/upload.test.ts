// The upload of a run's code to the URL that the launcher has signed.
import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { InvokeCommand, LambdaClient } from '@aws-sdk/client-lambda';
import { GetObjectCommand, ListObjectsV2Command, S3Client } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { Interrupted } from '../../../lib/cli/exit';
import { submit } from '../../../lib/cli/launch/submit';
import { mockClient } from '../../support/mocked-clients';
import { BASE, DESCRIPTOR, runOf } from '../../support/runs';

const lambda = mockClient(LambdaClient);
const s3 = mockClient(S3Client);
const descriptor = { ...DESCRIPTOR, controlAliasArn: 'arn:aws:lambda:us-west-2:111122223333:function:c:team-nlp' };
const run = runOf({ ...BASE, code: { source: 's3://{dataBucket}/code/' } });
const timeout = AbortSignal.timeout.bind(AbortSignal);
const limits = vi.spyOn(AbortSignal, 'timeout');

/** What S3 answers in turn: a status, nothing, or nothing while a person interrupts. 200 after these. */
let answers: (number | 'nothing' | 'interrupted')[];
let puts: number;
const server = http.createServer((request, response) => {
  puts += 1;
  const next = answers.shift() ?? 200;
  if (next === 'interrupted') process.emit('SIGINT');
  if (typeof next === 'number') request.resume().on('end', () => response.writeHead(next).end());
});
beforeAll(async () => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

/** The launcher, whose answers a signal may precede. */
function launcher(before: (payload: { action: string; confirm?: boolean }) => void = () => undefined): void {
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/secret`;
  lambda.on(InvokeCommand).callsFake(({ Payload }) => {
    const payload = JSON.parse(Buffer.from(Payload).toString());
    before(payload);
    const upload = { key: 'code/x.tar.gz', sha256: payload.code?.sha256, url, headers: {} };
    const answer = { ok: true, runId: 'r-1', ...(!payload.confirm && { uploads: [upload] }) };
    return { Payload: new TextEncoder().encode(JSON.stringify(answer)) };
  });
}

beforeEach(() => {
  [answers, puts] = [[], 0];
  limits.mockReset().mockImplementation(timeout);
  const Body = { transformToByteArray: async () => Buffer.from('print(1)') } as never;
  s3.on(ListObjectsV2Command).resolves({ Contents: [{ Key: 'code/train.py', Size: 8 }] });
  s3.on(GetObjectCommand).resolves({ Body });
  lambda.resetHistory();
  launcher();
});

const launched = () =>
  submit(
    {
      checked: { run, text: '', overrides: [], issues: [], positionOf: () => undefined },
      file: 'run.yaml',
      descriptor,
    },
    { acceptsUnknownPrice: true },
    {
      out: () => undefined,
      err: () => undefined,
    },
  );
const payloads = () =>
  lambda
    .commandCalls(InvokeCommand)
    .map(({ args }) => JSON.parse(Buffer.from(args[0].input.Payload as Uint8Array).toString()));
const STOPPED = new Interrupted('r-1: interrupted during its launch, and stopped');

test('one that does not answer in its time is tried again, each time with a limit of its own', async () => {
  answers = ['nothing', 503];
  limits.mockImplementationOnce(() => timeout(20));
  expect(await launched()).toMatchObject({ runId: 'r-1' });
  expect(puts).toBe(3);
  // Less than 100 kB: two minutes and one second.
  expect(limits.mock.calls).toEqual([[121_000], [121_000], [121_000]]);
});

test('fails: the third that does not answer names the key and the time, and not the URL', async () => {
  answers = ['nothing', 'nothing', 'nothing'];
  limits.mockImplementation(() => timeout(20));
  await expect(launched()).rejects.toThrow(
    /^uploading code\/x\.tar\.gz: failed 3 times, got no response in 121 s; try again$/,
  );
  expect(puts).toBe(3);
});

test('fails: Ctrl-C ends the upload, tries it no more, and stops the run', async () => {
  answers = ['interrupted'];
  await expect(launched()).rejects.toThrow(STOPPED);
  expect(puts).toBe(1);
  expect(payloads().at(-1)).toMatchObject({ action: 'stop', runId: 'r-1' });
});

test.each([
  ['before its id is known', undefined, 0],
  ['while it is confirmed', true, 1],
])('fails: an interrupt %s stops the run', async (_, during, expected) => {
  launcher(({ action, confirm }) => {
    if (action === 'start' && confirm === during) process.emit('SIGTERM');
  });
  await expect(launched()).rejects.toThrow(STOPPED);
  expect(puts).toBe(expected);
  expect(payloads().at(-1)).toMatchObject({ action: 'stop', runId: 'r-1' });
});
