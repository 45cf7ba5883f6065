// How far one invocation brings a run, when it waits within itself, and what it leaves to the next tick.
import path from 'node:path';
import { ListObjectsV2Command } from '@aws-sdk/client-s3';
import { beforeEach, describe, expect, test } from 'vitest';
import { changesQueue, isSettled, reconcileRun, wanted } from '../../../lib/control/reconcile/reconcile-run';
import type { RunRecord } from '../../../lib/core/lifecycle/record';
import { admitted, attempt, job, running, seeing, T0 } from '../../core/lifecycle/support/records';
import { type FakeWorld, fakeWorld, MINUTE, RUN_FILE } from '../support/fake-world';

let world: FakeWorld;
beforeEach(() => {
  world = fakeWorld();
});
const nameOf = (runId: string) => `research-${runId}-a001`;

describe('the time of an invocation', () => {
  const launched = async (remainingMs: number) => {
    world.reconcile.remainingMs = () => remainingMs;
    const runId = await world.launch();
    return (await world.store.find(runId))?.attempt?.phase;
  };

  test('lets the first round be played, however little is left, and no second one below 40 seconds', async () => {
    expect(await launched(39_999)).toBe('intent');
    expect(world.sagemaker.calls.create).toBe(1);
    expect(world.logged).toContain('info: left for the next tick');
  });

  test('of 40 seconds is enough for the round that adopts the job', async () => {
    expect(await launched(40_000)).toBe('created');
    expect(world.logged).not.toContain('info: left for the next tick');
  });

  test('must hold the pause and a round after a doubtful create', async () => {
    world.sagemaker.failCreate('refuse-before');
    expect(await launched(45_000)).toBe('intent');
    expect(world.sagemaker.calls.create).toBe(1);
  });
});

test('a lost race over a run whose job is there is read again without a pause', async () => {
  const runId = await world.launch();
  world.train(nameOf(runId));
  const { save } = world.store;
  let refusals = 1;
  world.store.save = async (...args) => (refusals-- > 0 ? false : save.apply(world.store, args));
  const before = world.now();
  await reconcileRun(world.reconcile, runId);
  expect(world.now()).toBe(before);
  expect((await world.store.find(runId))?.state).toBe('running');
});

test('a run that is over before its first attempt has left nothing behind, and nothing is looked for', async () => {
  world.limits.set('ml.m5.xlarge for training job usage', { value: 2 });
  await world.launch();
  world.pass(1000);
  const waiting = await world.launch();
  const before = world.s3.mock.calls().length;
  await world.ask({ action: 'stop', runId: waiting });
  await world.settle();
  expect((await world.store.find(waiting))?.state).toBe('stopped');
  expect(world.s3.mock.calls().length).toBe(before);
});

test('a run that is not there is said, and nothing is done', async () => {
  await reconcileRun(world.reconcile, 'gone-261121120000');
  expect(world.logged).toEqual(['warn: no such run']);
});

test('every line of the log about a run says which one', async () => {
  const lines: Record<string, unknown>[] = [];
  world.reconcile.log = (_level, message, context) => lines.push({ message, ...context });
  world.reconcile.chatTopics = { '': 'arn:chat' };
  world.sns.onAnyCommand().rejects(new Error('no topic'));
  const runId = await world.launch();
  world.s3.failList(new Error('503'), new Error('503'));
  world.end(nameOf(runId), 'Failed', 'AlgorithmError: exit code: 1');
  for (let i = 0; i < 3; i++) await world.tick();
  const messages = new Set(lines.map(({ message }) => message));
  expect(messages).toContain('a notice was not published');
  expect(lines.filter((line) => line.message !== 'tick' && line.runId !== runId)).toEqual([]);
  for (const line of lines.filter(({ message }) => String(message).includes('not ')))
    expect(String(line.error ?? line.what ?? '')).not.toBe('');
});

describe('an observation of a live job', () => {
  const listed = async (act: () => Promise<unknown>) => {
    const calls = () => world.s3.mock.commandCalls(ListObjectsV2Command).length;
    const before = calls();
    await act();
    return calls() - before;
  };

  test('reads its newest checkpoint alone, one that has ended three', async () => {
    const runId = await world.launch();
    world.train(nameOf(runId));
    for (const step of [10, 20, 30, 40]) world.commit(runId, step);
    // The folders, and the newest of them.
    expect(await listed(() => reconcileRun(world.reconcile, runId))).toBe(2);
    world.end(nameOf(runId), 'Stopped', undefined, 'MaxRuntimeExceeded');
    expect(await listed(() => world.tick())).toBeGreaterThan(3);
    expect(world.jobFile(runId, 2).checkpoints.resumeFrom).toContain('step-40');
  });
});

describe('what is looked at', () => {
  const OWN = RUN_FILE.replace(
    'code: { source: builtin }',
    `code: { source: 's3://artifact-bucket/runs/nlp/code.tar.gz', entryPoint: train.py, sha256: ${'c'.repeat(64)} }\ncheckpoints: { mode: managed, committedMarker: 'step-*/done' }`,
  ).replace(/^(model|training):.*\n/gm, '');
  const lists = () => world.s3.mock.commandCalls(ListObjectsV2Command).length;

  test('of own code is the marker that its run file names', async () => {
    const runId = await world.launch(OWN);
    world.train(nameOf(runId));
    world.s3.put(`checkpoint-bucket/runs/nlp/${runId}/step-70/done`, '');
    world.s3.put(
      `checkpoint-bucket/runs/nlp/${runId}/step-80/COMMITTED.json`,
      JSON.stringify({ step: 80, objects: [] }),
    );
    await world.tick();
    expect((await world.store.find(runId))?.committed?.step).toBe(70);
  });

  test.each([
    ['torchtitan', 'checkpoint/step-70/.metadata', 'checkpoint/step-70', 'checkpoint/step-80/__0_0.distcp'],
    ['transformers', 'checkpoint-70/trainer_state.json', 'checkpoint-70', 'checkpoint-80/model.safetensors'],
    ['lightning', 'epoch=3-step=70.ckpt', '', 'epoch=4.tmp'],
    ['verl', 'global_step_70/data.pt', 'global_step_70', 'global_step_80/actor/model.pt'],
    ['megatron', 'iter_0000070/metadata.json', 'iter_0000070', 'iter_0000080/.metadata'],
  ])('of a trainer whose format is named is what it writes last: %s', async (format, complete, folder, torn) => {
    const runId = await world.launch(
      OWN.replace(", committedMarker: 'step-*/done'", '').concat(`progress: { format: ${format} }\n`),
    );
    world.train(nameOf(runId));
    for (const name of [complete, torn]) world.s3.put(`checkpoint-bucket/runs/nlp/${runId}/${name}`, 'x');
    world.end(nameOf(runId), 'Stopped', undefined, 'MaxRuntimeExceeded');
    await world.tick();
    await world.tick();
    expect((await world.store.find(runId))?.committed?.step).toBe(70);
    const { checkpoints } = world.jobFile(runId, 2);
    expect(checkpoints.resumeFrom).toBe(path.join('/opt/ml/checkpoints', folder));
    expect(complete).toMatch(new RegExp(`${checkpoints.committedMarker?.split('/').at(-1)?.replace('*', '.*')}$`));
  });

  test('of a run that waits in the queue is nothing in S3, and nothing any more once it is over', async () => {
    world.limits.set('ml.m5.xlarge for training job usage', { value: 2 });
    const first = await world.launch();
    world.pass(1000);
    const second = await world.launch();
    world.train(nameOf(first));
    await world.tick();
    const before = lists();
    await reconcileRun(world.reconcile, second);
    expect((await world.store.find(second))?.state).toBe('queued');
    expect(lists()).toBe(before);
    world.end(nameOf(first), 'Completed');
    await world.tick();
    const described = world.sagemaker.calls.describe;
    const after = lists();
    await reconcileRun(world.reconcile, first);
    expect([lists(), world.sagemaker.calls.describe]).toEqual([after, described]);
  });
});

describe('the applied quota', () => {
  const SPOT = RUN_FILE.replace('instanceCount: 2', 'instanceCount: 2, capacity: spot');
  /** The limit is lowered between the start and its confirmation. */
  async function optionAt(limit: number): Promise<string | undefined> {
    const intent = await world.ask({ action: 'start', runFile: SPOT, clientRequestId: 'request' });
    if (!intent.ok || !('uploads' in intent)) throw new Error(JSON.stringify(intent));
    world.limits.set('ml.m5.xlarge for spot training job usage', { value: limit });
    await world.ask({ action: 'start', runId: intent.runId, confirm: true });
    await world.settle();
    await world.tick();
    return (await world.store.find(intent.runId))?.capacityOptionId;
  }

  test('that is below the need of a capacity option makes the run ask for the next one', async () => {
    expect(await optionAt(1)).toBe('on-demand');
  });

  test('of exactly the need is enough', async () => {
    expect(await optionAt(2)).toBe('as-written');
  });
});

describe('what was decided', () => {
  const NOW = T0 + MINUTE;

  test('is settled after a write that wants nothing more, and not after an effect or news', () => {
    const observed = seeing({ job: job() });
    const actions = wanted(running({ state: 'pending' }), observed, NOW);
    expect(actions.map((a) => a.do)).toEqual(['save']);
    expect(isSettled(actions, observed, NOW)).toBe(true);
    expect(isSettled([], observed, NOW)).toBe(false);
    expect(isSettled(actions, { ...observed, published: ['a'] }, NOW)).toBe(false);
    expect(isSettled(actions, { ...observed, create: { kind: 'accepted', arn: 'a' } }, NOW)).toBe(false);
    const launch = wanted(admitted(), seeing(), NOW);
    expect(launch.map((a) => a.do)).toEqual(['save', 'create']);
    expect(isSettled(launch, seeing(), NOW)).toBe(false);
  });

  test('changes the queue when a run ends, returns its room, or joins it', () => {
    const [live, over, queued] = [
      running(),
      running({ state: 'failed' }),
      running({ state: 'queued', admitted: false, attempt: attempt({ phase: 'ended' }) }),
    ] as [RunRecord, RunRecord, RunRecord];
    const unjudged = running({ admitted: false });
    const pairs = [
      [live, over],
      [live, queued],
      [over, over],
      [queued, queued],
      [queued, live],
      [live, live],
      [queued, over],
      [live, unjudged],
      [unjudged, queued],
    ] as const;
    expect(pairs.map(([before, after]) => changesQueue(before, after))).toEqual([
      true,
      true,
      false,
      false,
      false,
      false,
      true,
      true,
      true,
    ]);
  });
});
