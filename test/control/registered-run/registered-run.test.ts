import { InvokeCommand, LambdaClient } from '@aws-sdk/client-lambda';
import { GetObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { beforeEach, expect, test, vi } from 'vitest';
import { onEvent } from '../../../lib/control/registered-run/index';
import { resourceEvents } from '../../support/custom-resource-events';
import { mockClient } from '../../support/mocked-clients';

const ALIAS = 'arn:aws:lambda:us-west-2:111122223333:function:slipway-research-control:team-nlp';
const HASH = 'a'.repeat(64);
const DIGEST = 'b'.repeat(64);
const CODE = Buffer.from('an archive');

const lambda = mockClient(LambdaClient);
const s3 = mockClient(S3Client);
const put = vi.fn<typeof fetch>();
const deps = { lambda: new LambdaClient(), s3: new S3Client({ region: 'us-west-2' }), fetch: put };
const events = resourceEvents('Custom::SlipwayRegisteredRun', {
  controlAliasArn: ALIAS,
  hash: HASH,
  assetBucket: 'assets',
  runFileKey: 'run.yaml',
  codeKey: 'code.tar.gz',
  codeSha256: DIGEST,
});

const answer = (body: unknown) => ({ Payload: Buffer.from(JSON.stringify(body)) as never });
const calls = () =>
  lambda
    .commandCalls(InvokeCommand)
    .map(({ args: [{ input }] }) => [
      input.FunctionName,
      JSON.parse(Buffer.from(input.Payload as Uint8Array).toString()),
    ]);
const upload = { key: 'code/x', url: 'https://s3.example/x?secret', headers: { 'x-amz-checksum-sha256': 'c' } };

beforeEach(() => {
  lambda.reset();
  s3.reset();
  put.mockReset().mockResolvedValue(new Response(null, { status: 200 }));
  const objects: Record<string, Buffer> = { 'run.yaml': Buffer.from('name: base\n'), 'code.tar.gz': CODE };
  s3.on(GetObjectCommand).callsFake(({ Key }) => ({ Body: { transformToByteArray: async () => objects[Key] } }));
  lambda
    .on(InvokeCommand)
    .resolvesOnce(
      answer({ ok: true, runId: 'base-1', uploads: [{ ...upload, sha256: DIGEST }], issues: [], quota: [] }),
    )
    .resolves(answer({ ok: true, runId: 'base-1', state: 'queued' }));
});

test('starts the run through the alias of its team, uploads its code, confirms', async () => {
  expect(await onEvent(deps, events.create())).toEqual({
    PhysicalResourceId: 'run-Resource',
    Data: { RunId: 'base-1' },
  });
  expect(calls()).toEqual([
    [
      ALIAS,
      { action: 'start', runFile: 'name: base\n', code: { sha256: DIGEST, bytes: CODE.length }, clientRequestId: HASH },
    ],
    [ALIAS, { action: 'start', runId: 'base-1', confirm: true }],
  ]);
  const [url, request] = put.mock.calls[0] ?? [];
  expect(url).toBe(upload.url);
  expect(request?.headers).toEqual(upload.headers);
  expect(Buffer.from(request?.body as Uint8Array)).toEqual(CODE);
});

test('a run without own code sends no digest; an update is a start with the new hash', async () => {
  lambda
    .reset()
    .on(InvokeCommand)
    .resolves(answer({ ok: true, runId: 'base-2', uploads: [] }));
  await onEvent(deps, events.update({ codeKey: undefined, codeSha256: undefined, hash: DIGEST }));
  expect(calls()[0]?.[1]).toEqual({ action: 'start', runFile: 'name: base\n', clientRequestId: DIGEST });
  expect(put).not.toHaveBeenCalled();
});

test.each([{ codeKey: undefined }, { codeSha256: undefined }])(
  'a run with %j, without the other half of its code, sends no digest',
  async (half) => {
    lambda
      .reset()
      .on(InvokeCommand)
      .resolves(answer({ ok: true, runId: 'base-2', uploads: [] }));
    await onEvent(deps, events.create(half));
    expect(calls()[0]?.[1]).toEqual({ action: 'start', runFile: 'name: base\n', clientRequestId: HASH });
  },
);

test('a launcher that asks for an upload of a run without code gets an empty one, and an empty object is empty', async () => {
  s3.on(GetObjectCommand).resolves({});
  await onEvent(deps, events.create({ codeKey: undefined, codeSha256: undefined }));
  expect(put.mock.calls[0]?.[1]?.body).toBeUndefined();
  expect(calls()[0]?.[1].runFile).toBe('');
});

test('a deletion calls nobody', async () => {
  expect(await onEvent(deps, events.delete())).toEqual({ PhysicalResourceId: 'physical-1' });
  expect(lambda.calls()).toEqual([]);
});

test('fails: what the launcher refuses is the reason of the failed deploy', async () => {
  const issues = [
    { rule: 'a', level: 'warning', path: '', message: 'not this' },
    { rule: 'b', level: 'error', path: '', message: 'compute.instanceCount: must be at most 2, got 4; lower it' },
  ];
  lambda
    .reset()
    .on(InvokeCommand)
    .resolves(answer({ ok: false, issues }));
  await expect(onEvent(deps, events.create())).rejects.toThrow(
    /^compute.instanceCount: must be at most 2, got 4; lower it$/,
  );
});

test('fails: a long error of the launcher is cut for CloudFormation', async () => {
  lambda
    .reset()
    .on(InvokeCommand)
    .resolves({ FunctionError: 'Unhandled', ...answer({ errorMessage: 'x'.repeat(2000) }) });
  const message = await onEvent(deps, events.create()).catch((error: Error) => error.message);
  expect(message).toHaveLength('the launcher failed: ; see its log'.length + 500);
});

test.each<[string, () => Promise<Response>]>([
  ['HTTP 403', async () => new Response(null, { status: 403 })],
  ['no answer in 120 s', () => Promise.reject(new DOMException('aborted', 'TimeoutError'))],
  ['fetch failed', () => Promise.reject(new TypeError('fetch failed'))],
])('fails: an upload that got %s names its key, and not its URL', async (got, answered) => {
  put.mockImplementation(answered);
  await expect(onEvent(deps, events.create())).rejects.toThrow(
    new RegExp(`^uploading code/x: failed, got ${got}; deploy again$`),
  );
});

test('fails: an error in the launcher', async () => {
  lambda
    .reset()
    .on(InvokeCommand)
    .resolves({ FunctionError: 'Unhandled', ...answer({ errorMessage: 'boom' }) });
  await expect(onEvent(deps, events.create())).rejects.toThrow(/^the launcher failed: .*boom/);
});
