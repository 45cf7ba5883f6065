// What a start answers and writes: whole answers, refusals at their path, and which earlier run stands for a repeated one.
import { beforeEach, describe, expect, test } from 'vitest';
import type { ControlPayload } from '../../../lib/core/contracts/control';
import { ITEM } from '../../../lib/core/contracts/storage';
import { type FakeWorld, fakeWorld, RUN_FILE } from '../support/fake-world';

let world: FakeWorld;
beforeEach(() => {
  world = fakeWorld();
});
const HASH = 'a'.repeat(64);
const DIGEST = 'b'.repeat(64);
const RUN = 'pretrain-261121120000';
const OWN_CODE = `name: own
code: { source: ./src }
image: { kind: uri, uri: "111122223333.dkr.ecr.us-west-2.amazonaws.com/mine@sha256:${'0'.repeat(64)}" }
compute: { instanceType: ml.m5.xlarge }
`;
const start = (more: object = {}) =>
  world.ask({ action: 'start', runFile: RUN_FILE, clientRequestId: 'r1', ...more } as ControlPayload);
const startedId = async (more: object) => {
  const answer = await start(more);
  if (!answer.ok || !('runId' in answer)) throw new Error(JSON.stringify(answer));
  return answer.runId;
};
const errorsOf = (answer: Awaited<ReturnType<typeof start>>) =>
  'issues' in answer ? answer.issues.filter(({ level }) => level === 'error') : [];

describe('the answer', () => {
  test('has each quota with limit, use and verdict', async () => {
    world.limits.set('ml.m5.xlarge for training job usage', { value: 4 });
    const answer = await start();
    expect(answer).toMatchObject({ ok: true, runId: RUN, uploads: [] });
    expect('quota' in answer && answer.quota).toContainEqual({
      code: expect.stringMatching(/^L-[0-9A-F]{8}$/),
      name: 'ml.m5.xlarge for training job usage',
      needed: 2,
      limit: 4,
      inUse: null,
      verdict: 'enough',
    });
  });

  test('to the same request is short: what was checked once is not checked again', async () => {
    await start();
    const writes = world.table.writes();
    world.s3.objects.clear();
    expect(await start()).toEqual({ ok: true, runId: RUN, uploads: [], issues: [], quota: [] });
    expect([world.table.writes(), world.s3.objects.size]).toEqual([writes, 0]);
  });

  test('to a confirmation names no job yet', async () => {
    await start();
    expect(await world.ask({ action: 'start', runId: RUN, confirm: true })).toEqual({
      ok: true,
      runId: RUN,
      state: 'queued',
      queuePosition: null,
      trainingJobName: null,
      trainingJobArn: null,
    });
  });

  test('to a file that cannot be read has its issues and no quota', async () => {
    const answer = await start({ runFile: 'name: [' });
    expect(answer).toMatchObject({ ok: false, quota: [] });
    expect(errorsOf(answer)).toHaveLength(1);
  });
});

describe('fails', () => {
  test('in an environment that is being deleted, for a start and for a resume', async () => {
    const closed = { runId: { S: ITEM.closed }, item: { S: ITEM.closed }, isClosed: { BOOL: true } };
    world.table.items.set(`${ITEM.closed}|${ITEM.closed}`, closed);
    const answer = await start();
    expect(answer).toMatchObject({ ok: false, issues: [{ rule: 'environment/closed', path: 'environment' }] });
    expect(world.table.items.size).toBe(1);
    world.table.items.set(`${ITEM.closed}|${ITEM.closed}`, { ...closed, isClosed: { BOOL: false } });
    expect(await start()).toMatchObject({ ok: true });
  });

  test.each([
    ['after: [gone-261121120000]', 'after[0]', 'gone-261121120000'],
    ['checkpoints: { startFrom: gone-261121120000 }', 'checkpoints.startFrom', 'gone-261121120000'],
  ])('%s: a run of nobody', async (line, path, got) => {
    expect(errorsOf(await start({ runFile: `${RUN_FILE}${line}\n` }))).toEqual([
      {
        rule: 'run/unknown',
        level: 'error',
        path,
        message: `${path}: must be a run of team nlp, got ${got}; see slipway list`,
      },
    ]);
  });

  test.each([
    [
      'built-in code',
      RUN_FILE,
      { code: { sha256: DIGEST, bytes: 5 } },
      'must be own code when a digest is sent, got builtin; send no digest',
    ],
    ['own code', OWN_CODE, {}, 'must come with the digest of its archive, got ./src; launch with the slipway command'],
    [
      'an archive in S3',
      OWN_CODE.replace('./src', 's3://artifact-bucket/runs/nlp/code.tar.gz, entryPoint: train.py'),
      {},
      'must come with the digest of its archive: the driver starts nothing unchecked, got s3://artifact-bucket/runs/nlp/code.tar.gz;',
    ],
  ])('%s with the wrong half of its digest', async (_, runFile, more, message) => {
    const [error, ...others] = errorsOf(await start({ runFile, ...more }));
    expect(error?.message).toContain(`code.source: ${message}`);
    expect([error?.rule, error?.path, others]).toEqual(['code/digest', 'code.source', []]);
  });

  test('a run id that is taken, after one try, and a confirmation of a run that is not there', async () => {
    await start({ runId: 'mine' });
    const { create } = world.store;
    let tries = 0;
    world.store.create = (...args) => {
      tries += 1;
      return create.apply(world.store, args);
    };
    expect(await start({ runId: 'mine', clientRequestId: 'r2' })).toMatchObject({ issues: [{ rule: 'run-id/taken' }] });
    expect(tries).toBe(1);
    const answer = await world.ask({ action: 'start', runId: 'gone', confirm: true });
    expect(answer).toMatchObject({ ok: false, issues: [{ rule: 'run/unknown' }] });
  });

  test.each([
    ['another run file', { runFile: OWN_CODE.replace('xlarge', '2xlarge') }],
    ['another value', { overrides: ['compute.instanceCount=2'] }],
    ['a file that cannot be read', { runFile: 'name: [' }],
    ['other code', { code: { sha256: DIGEST.replace(/^./, (digit) => (digit === '0' ? '1' : '0')), bytes: 5 } }],
  ])('%s under the id of an earlier request', async (_, change) => {
    const request = { runFile: OWN_CODE, code: { sha256: DIGEST, bytes: 5 }, clientRequestId: 'mine' };
    const runId = await startedId(request);
    expect(errorsOf(await start({ ...request, ...change }))).toEqual([
      {
        rule: 'request-id/reused',
        level: 'error',
        path: '--client-request-id',
        message: `--client-request-id: must be new for another run file or other code: it started ${runId}, got mine; use another id`,
      },
    ]);
    expect(await startedId(request)).toBe(runId);
  });

  test('a request whose run has lost its intent is an error, and its file is no live twin', async () => {
    await start({ clientRequestId: HASH });
    const { findIntent } = world.store;
    world.store.findIntent = async () => undefined;
    await expect(start({ clientRequestId: HASH })).rejects.toThrow(`run ${RUN} has no intent in the run table`);
    for (const [id, item] of world.table.items) if (item.madeRun) world.table.items.delete(id);
    world.pass(60_000);
    world.store.findIntent = async (runId) => (runId === RUN ? undefined : findIntent.call(world.store, runId));
    expect(await startedId({ clientRequestId: HASH })).not.toBe(RUN);
  });

  test('a run id whose job names would have more than 63 characters; one that fits is taken', async () => {
    // research-<id>-a999
    const id = (length: number) => 'x'.repeat(length);
    expect(await start({ runId: id(45) })).toMatchObject({ ok: true, runId: id(45) });
    world.describe({ name: 'research-of-all' });
    world.pass(60_000);
    const [error] = errorsOf(await start({ runId: id(45), clientRequestId: 'r2' }));
    expect(error?.message).toContain('(research-of-all-<run id>-a001)');
  });
});

describe('a run is written', () => {
  test('with tags and note where it has some, and without the fields where it has none', async () => {
    const plain = await world.store.find(await startedId({}));
    expect(Object.keys(plain ?? {})).not.toEqual(expect.arrayContaining(['tags']));
    expect(plain).not.toHaveProperty('note');
    expect(plain).not.toHaveProperty('notBefore');
    const more = { runFile: `${RUN_FILE}tags: { project: x }\n`, note: 'a try', startAt: '2026-11-22T00:00:00.000Z' };
    const full = await world.store.find(await startedId({ ...more, clientRequestId: 'r2' }));
    expect(full).toMatchObject({ tags: { project: 'x' }, note: 'a try', notBefore: Date.UTC(2026, 10, 22) });
  });
});

describe('the same request id', () => {
  test('finds the run of an earlier version, whose intent does not say what was sent', async () => {
    const runId = await startedId({ clientRequestId: 'mine' });
    for (const item of world.table.items.values()) {
      const { textHash, ...document } = JSON.parse(item.document?.S ?? '{}');
      if (textHash) item.document = { S: JSON.stringify(document) };
    }
    expect(await startedId({ clientRequestId: 'mine', overrides: ['compute.instanceCount=1'] })).toBe(runId);
  });

  test('of a launch that waited for a fetch finds the run when that has ended', async () => {
    const fetch = await startedId({ runId: 'fetch', clientRequestId: 'fetch' });
    const runId = await startedId({ clientRequestId: 'mine', overrides: [`after=["${fetch}"]`] });
    expect(await startedId({ clientRequestId: 'mine', overrides: [] })).toBe(runId);
  });

  test('of a registered run finds it, also when another version reads other defaults from its file', async () => {
    const runId = await startedId({ clientRequestId: HASH });
    expect(await start({ clientRequestId: HASH, overrides: ['compute.instanceCount=1'] })).toMatchObject({
      ok: true,
      runId,
    });
  });

  test('finds the run whose archive in S3 has changed: the run keeps the digest it had', async () => {
    const runFile = OWN_CODE.replace('./src', 's3://data-bucket/code/train.tar.gz');
    const runId = await startedId({ runFile, code: { sha256: DIGEST, bytes: 5 } });
    expect(await startedId({ runFile, code: { sha256: DIGEST.replaceAll('b', 'c'), bytes: 6 } })).toBe(runId);
    expect((await world.store.findIntent(runId))?.code).toMatchObject({ sha256: DIGEST });
  });
});

test.each([
  [{}, 100, 'guardrails.maxCostPerRunUsd'],
  [{ overrides: ['limits.maxCostUsd=99'] }, 99, undefined],
])('a run is capped by the guardrail unless its own cap is lower (%j)', async (more, cap, from) => {
  world.describe({ guardrails: { maxCostPerRunUsd: 100 } });
  const record = await world.store.find(await startedId({ acceptsUnknownPrice: true, ...more }));
  expect(record?.policy).toMatchObject({ maxCostUsd: cap });
  expect(record?.policy.costCapFrom).toBe(from);
});

test('an upload is signed for its digest and the key of the team', async () => {
  const teamKeyArn = 'arn:aws:kms:us-west-2:111122223333:key/0f1e2d3c-0000-4000-8000-000000000000';
  world.describe({ teamKeyArn });
  const signed: object[] = [];
  world.control.presign = async (_, upload) => {
    signed.push(upload);
    return { url: 'https://signed', headers: {} };
  };
  await startedId({ runFile: OWN_CODE, code: { sha256: DIGEST, bytes: 5 } });
  expect(signed).toEqual([{ sha256: DIGEST, teamKeyArn }]);
});

describe('a start whose code did not arrive in time', () => {
  const uploaded = { runFile: OWN_CODE, code: { sha256: DIGEST, bytes: 5 } };
  const confirmed = (runId: string) => world.ask({ action: 'start', runId, confirm: true });
  const arrive = (answer: Awaited<ReturnType<typeof start>>) => {
    if (!answer.ok || !('uploads' in answer)) throw new Error(JSON.stringify(answer));
    const [upload] = answer.uploads;
    world.s3.put(`artifact-bucket/${upload?.key}`, '12345');
    return answer.runId;
  };

  test('fails, and the same request starts the same run again', async () => {
    const runId = await startedId(uploaded);
    await world.tick(61);
    expect(await world.store.find(runId)).toMatchObject({ state: 'failed' });
    expect(arrive(await start(uploaded))).toBe(runId);
    await world.tick(59);
    expect(await confirmed(runId)).toMatchObject({ ok: true, state: 'queued' });
    expect(await start(uploaded)).toMatchObject({ ok: true, runId, uploads: [] });
  });

  test('and that has ended starts again only by its request, not by a confirmation under way', async () => {
    const runId = arrive(await start(uploaded));
    await world.ask({ action: 'stop', runId });
    await world.tick();
    expect(await confirmed(runId)).toMatchObject({ ok: false, issues: [{ rule: 'code/upload' }] });
    await start(uploaded);
    expect(await confirmed(runId)).toMatchObject({ ok: true, state: 'queued' });
  });

  test('does not start again in an environment that is being deleted', async () => {
    const runId = await startedId(uploaded);
    await world.tick(61);
    world.table.items.set(`${ITEM.closed}|${ITEM.closed}`, {
      ...{ runId: { S: ITEM.closed }, item: { S: ITEM.closed }, isClosed: { BOOL: true } },
    });
    expect(await start(uploaded)).toMatchObject({ ok: false, issues: [{ rule: 'environment/closed' }] });
    expect(await world.store.find(runId)).toMatchObject({ state: 'failed' });
  });
});
