// The upload of a run's code to the URL that the launcher has signed.
import { InvokeCommand, LambdaClient } from '@aws-sdk/client-lambda';
import { GetObjectCommand, ListObjectsV2Command, S3Client } from '@aws-sdk/client-s3';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Interrupted } from '../../../lib/cli/exit';
import { submit } from '../../../lib/cli/launch/submit';
import { mockClient } from '../../support/mocked-clients';
import { BASE, DESCRIPTOR, runOf } from '../../support/runs';

const lambda = mockClient(LambdaClient);
const s3 = mockClient(S3Client);
const descriptor = { ...DESCRIPTOR, controlAliasArn: 'arn:aws:lambda:us-west-2:111122223333:function:c:team-nlp' };
const run = runOf({ ...BASE, code: { source: 's3://{dataBucket}/code/' } });
const fetched = vi.fn<typeof fetch>();
const limits = vi.spyOn(AbortSignal, 'timeout');

beforeEach(() => {
  vi.stubGlobal('fetch', fetched.mockReset());
  limits.mockClear();
  const Body = { transformToByteArray: async () => Buffer.from('print(1)') } as never;
  s3.on(ListObjectsV2Command).resolves({ Contents: [{ Key: 'code/train.py', Size: 8 }] });
  s3.on(GetObjectCommand).resolves({ Body });
  lambda.on(InvokeCommand).callsFake(({ Payload }) => {
    const { confirm, code } = JSON.parse(Buffer.from(Payload).toString());
    const upload = { key: 'code/x.tar.gz', sha256: code?.sha256, url: 'https://signed/secret', headers: {} };
    const answer = { ok: true, runId: 'r-1', ...(!confirm && { uploads: [upload] }) };
    return { Payload: new TextEncoder().encode(JSON.stringify(answer)) };
  });
});
afterEach(() => vi.unstubAllGlobals());

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
const timeout = new DOMException('aborted', 'TimeoutError');

test('one that does not answer in its time is tried again, each time with a limit of its own', async () => {
  fetched.mockRejectedValueOnce(timeout).mockResolvedValueOnce(new Response(null, { status: 503 }));
  fetched.mockResolvedValue(new Response(null, { status: 200 }));
  expect(await launched()).toMatchObject({ runId: 'r-1' });
  const signals = fetched.mock.calls.map(([, init]) => init?.signal);
  expect(new Set(signals).size).toBe(3);
  // Less than 100 kB: two minutes and one second.
  expect(limits.mock.calls).toEqual([[121_000], [121_000], [121_000]]);
});

test('fails: the third that does not answer names the key and the time, and not the URL', async () => {
  fetched.mockRejectedValue(timeout);
  await expect(launched()).rejects.toThrow(
    /^uploading code\/x\.tar\.gz: failed 3 times, got no response in 121 s; try again$/,
  );
  expect(fetched).toHaveBeenCalledTimes(3);
});

const payloads = () =>
  lambda
    .commandCalls(InvokeCommand)
    .map(({ args }) => JSON.parse(Buffer.from(args[0].input.Payload as Uint8Array).toString()));
const STOPPED = new Interrupted('r-1: interrupted during its launch, and stopped');

test('fails: Ctrl-C ends the upload, tries it no more, and stops the run', async () => {
  fetched.mockImplementation((_, init) => {
    process.emit('SIGINT');
    return Promise.reject(init?.signal?.aborted ? new DOMException('aborted', 'AbortError') : new Error('goes on'));
  });
  await expect(launched()).rejects.toThrow(STOPPED);
  expect(fetched).toHaveBeenCalledTimes(1);
  expect(payloads().at(-1)).toMatchObject({ action: 'stop', runId: 'r-1' });
});

test.each([
  ['before its id is known', undefined, 0],
  ['while it is confirmed', true, 1],
])('fails: an interrupt %s stops the run', async (_, during, uploads) => {
  lambda.resetHistory();
  fetched.mockResolvedValue(new Response(null, { status: 200 }));
  lambda.on(InvokeCommand).callsFake(({ Payload }) => {
    const { action, confirm, code } = JSON.parse(Buffer.from(Payload).toString());
    if (action === 'start' && confirm === during) process.emit('SIGTERM');
    const upload = { key: 'code/x.tar.gz', sha256: code?.sha256, url: 'https://signed/secret', headers: {} };
    const answer = { ok: true, runId: 'r-1', ...(!confirm && { uploads: [upload] }) };
    return { Payload: new TextEncoder().encode(JSON.stringify(answer)) };
  });
  await expect(launched()).rejects.toThrow(STOPPED);
  expect(fetched).toHaveBeenCalledTimes(uploads);
  expect(payloads().at(-1)).toMatchObject({ action: 'stop', runId: 'r-1' });
});
