// Objects that the code of a run writes: heartbeat, failure file, markers.
import { ListObjectsV2Command } from '@aws-sdk/client-s3';
import { describe, expect, test } from 'vitest';
import { reconcileRun } from '../../lib/control/reconcile/reconcile-run';
import { RESERVE_MS } from '../../lib/control/shared/deadline';
import { RECONCILE_TIMEOUT_SECONDS } from '../../lib/core/contracts/launcher';
import { type FakeWorld, fakeWorld, RUN_FILE } from '../control/support/fake-world';

async function training(runFile = RUN_FILE) {
  const world = fakeWorld();
  world.describe({ prices: { 'ml.m5.xlarge': 10 } });
  const runId = await world.launch(runFile);
  world.train(`research-${runId}-a001`);
  await world.tick(5);
  const heartbeat = (await world.store.find(runId))?.attempt?.files?.heartbeat?.replace('s3://', '') ?? '';
  return { world, runId, heartbeat };
}

const heartbeatText = (world: FakeWorld, more: object = {}): string => {
  const at = world.now() / 1000;
  const starts = [{ number: 0, firstStep: 1, firstStepAt: at - 600, step: 10, stepAt: at - 5, endedAt: null }];
  return JSON.stringify({ attempt: 1, step: 10, phase: 'train', at, starts, ...more });
};

const HEARTBEATS: Record<string, (world: FakeWorld, i: number) => string> = {
  'a text of 300 KB about its loss': (world) => heartbeatText(world, { lossAlert: 'x'.repeat(300_000) }),
  'a text of 50 KB about its loss': (world) => heartbeatText(world, { lossAlert: 'x'.repeat(50_000) }),
  'a phase of 50 KB': (world) => heartbeatText(world, { phase: 'p'.repeat(50_000) }),
  '3,000 hosts that were set aside': (world) =>
    heartbeatText(world, { setAside: Array.from({ length: 3000 }, (_, i) => ({ host: `a${i}`, reason: '' })) }),
  'other hosts that were set aside each time': (world, i) =>
    heartbeatText(world, {
      setAside: Array.from({ length: 60 }, (_, n) => ({ host: `a${i}-${n}`, reason: 'r'.repeat(300) })),
    }),
  'another slow host each time': (world, i) =>
    heartbeatText(world, { slowHost: { host: `h${i}`, what: 'step', ratio: 3 } }),
  'times outside any calendar': (world) =>
    heartbeatText(world, {
      starts: [{ number: 0, firstStep: 1, firstStepAt: 1e18, step: 2, stepAt: -1e18, endedAt: 1e18 }],
    }),
  'steps outside any count': (world, i) => heartbeatText(world, { step: 1e308 - i, firstStep: -1 }),
  '700 starts': (world) =>
    heartbeatText(world, {
      starts: Array.from({ length: 700 }, (_, i) => ({
        number: i,
        firstStep: i,
        firstStepAt: 1,
        step: i,
        stepAt: 2,
        endedAt: 3,
      })),
    }),
  'starts with other numbers each time': (world, i) =>
    heartbeatText(world, {
      starts: Array.from({ length: 100 }, (_, n) => ({
        number: i * 100 + n,
        firstStep: 1,
        firstStepAt: world.now() / 1000,
        step: 1,
        stepAt: world.now() / 1000,
        endedAt: null,
      })),
    }),
  'a speed that is not a number': (world) => heartbeatText(world, { stepsPerHour: 'fast', usualStepsPerHour: -1e300 }),
  'no JSON': () => '{"attempt":1,',
  'a list': () => '[]',
};

describe('a heartbeat with', () => {
  test.each(Object.entries(HEARTBEATS))('%s hides the run from nobody and keeps it from no stop', async (_, text) => {
    const { world, runId, heartbeat } = await training(`${RUN_FILE}limits: { maxCostUsd: 300 }\n`);
    for (let i = 0; i < 40; i++) {
      world.s3.put(heartbeat, text(world, i));
      await world.tick(5);
    }
    expect(await world.ask({ action: 'list' })).toMatchObject({ ok: true, runs: [{ runId }] });
    expect(await world.ask({ action: 'status', runId, timeline: true })).toMatchObject({ ok: true, attempt: 1 });
    expect(await world.ask({ action: 'events' })).toMatchObject({ ok: true });
    expect(world.published.length).toBeLessThan(50);
    await world.ask({ action: 'stop', runId });
    await world.settle();
    expect(world.sagemaker.calls.stop).toBeGreaterThan(0);
    expect(
      Math.max(...[...world.table.items.values()].map((item) => Buffer.byteLength(JSON.stringify(item)))),
    ).toBeLessThan(350_000);
  });

  test('more bytes than one may have is not read into memory', async () => {
    const { world, heartbeat } = await training();
    let read = 0;
    world.s3.put(heartbeat, 'x'.repeat(70_000));
    world.s3.hooks.onBody = () => {
      read += 1;
    };
    await world.tick(5);
    expect(read).toBe(0);
  });
});

test('a program that ends with 0 before its last step completes with a notice that says so', async () => {
  const { world, runId, heartbeat } = await training();
  world.s3.put(heartbeat, heartbeatText(world, { endedEarly: 'exit code 0 after step 10 of 100' }));
  world.end(`research-${runId}-a001`, 'Completed');
  await world.tick(5);
  const reason = 'training completed, but it may have ended early: exit code 0 after step 10 of 100';
  expect(await world.ask({ action: 'status', runId })).toMatchObject({ state: 'completed', reason });
  expect(world.published.join()).toContain(reason);
});

describe('a marker of a checkpoint', () => {
  const committed = async (folder: string, marker: object) => {
    const { world, runId } = await training();
    const prefix = `checkpoint-bucket/runs/nlp/${runId}/${folder}`;
    world.s3.put(`${prefix}shard-0`, 'data');
    world.s3.put(
      `${prefix}COMMITTED.json`,
      JSON.stringify({ schema: 1, attempt: 1, objects: [{ key: 'shard-0', bytes: 4 }], ...marker }),
    );
    await world.tick(5);
    return (await world.store.find(runId))?.committed?.step ?? null;
  };
  test('counts for the step of its folder', async () => {
    expect(await committed('step-40/', { step: 40 })).toBe(40);
  });
  test.each<[string, string, object]>([
    ['a folder with a step outside any count', 'step-99999999999999999999/', { step: 1e20 }],
    ['another step than its folder', 'step-40/', { step: 9_000_000 }],
    ['a negative step', 'step-40/', { step: -40 }],
  ])('with %s is no checkpoint', async (_, folder, marker) => {
    expect(await committed(folder, marker)).toBeNull();
  });
});

describe('checkpoints with more objects than can be looked at', () => {
  test('keep their run from no stop within one invocation', async () => {
    const { world, runId } = await training();
    const name = `research-${runId}-a001`;
    const began = world.now();
    const Prefix = (step: number) => ({ Prefix: `runs/nlp/${runId}/step-${step}/` });
    world.s3.mock.on(ListObjectsV2Command).callsFake((input) => {
      world.pass(200);
      if (input.Delimiter) return { CommonPrefixes: [1, 2, 3].map(Prefix) };
      const page = Number(input.ContinuationToken ?? 0);
      const Contents = Array.from({ length: 1000 }, (_, i) => ({
        Key: `${input.Prefix}${String(page * 1000 + i).padStart(9, '0')}`,
        Size: 1,
        LastModified: new Date(began),
      }));
      return { Contents, IsTruncated: true, NextContinuationToken: String(page + 1) };
    });
    await world.ask({ action: 'stop', runId });
    const remainingMs = () => RECONCILE_TIMEOUT_SECONDS * 1000 - RESERVE_MS - (world.now() - began);
    await reconcileRun({ ...world.reconcile, remainingMs }, runId);
    expect(world.sagemaker.job(name).status).toBe('Stopping');
    expect(remainingMs()).toBeGreaterThan(0);
  });

  test('do not let their run begin again: a person is told that they cannot be read', async () => {
    const { world, runId } = await training();
    const marker = 'x'.repeat(8 * 1024 * 1024 + 1);
    world.s3.put(`checkpoint-bucket/runs/nlp/${runId}/step-40/COMMITTED.json`, marker);
    world.end(`research-${runId}-a001`, 'Failed', 'InternalServerError: We encountered an internal error.');
    await world.tick(5);
    await world.tick(5);
    expect(world.sagemaker.calls.create).toBe(1);
    expect(world.published.join()).toContain('step-40/COMMITTED.json has 8388609 bytes');
  });
});

test('a run file whose stored form is too large is refused, and nothing is stored', async () => {
  const world = fakeWorld();
  const argument = (_: unknown, i: number) => `k${i}: "${'é'.repeat(40)}"`;
  const runFile = `name: large
code: { source: ./x, entryPoint: train.py, arguments: { ${Array.from({ length: 3000 }, argument).join(', ')} } }
compute: { instanceType: ml.m5.xlarge, instanceCount: 1 }
distribution: { library: custom, launcher: script }
`;
  const code = { sha256: 'a'.repeat(64), bytes: 4 };
  const answer = await world.ask({ action: 'start', runFile, clientRequestId: 'large', code });
  expect('issues' in answer && answer.issues.map(({ rule }) => rule)).toContain('run-file/size');
  expect(world.table.items.size).toBe(0);
});
