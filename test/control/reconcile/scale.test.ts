import { BatchGetItemCommand, DynamoDBClient, QueryCommand } from '@aws-sdk/client-dynamodb';
import { ListObjectsV2Command } from '@aws-sdk/client-s3';
import { DescribeTrainingJobCommand, ListTrainingJobsCommand } from '@aws-sdk/client-sagemaker';
import { GetParameterCommand } from '@aws-sdk/client-ssm';
import fc from 'fast-check';
import { beforeEach, describe, expect, test } from 'vitest';
import { boundedTimeline } from '../../../lib/control/control/reads/status';
import { readAgain } from '../../../lib/control/reconcile/admit-runs';
import { listCheckpoints } from '../../../lib/control/reconcile/observe/checkpoints';
import { othersUsage } from '../../../lib/control/reconcile/queue/others-usage';
import { RunNeeds } from '../../../lib/control/reconcile/queue/run-needs';
import { onEvent } from '../../../lib/control/reconcile/reconcile';
import { runItem } from '../../../lib/control/shared/items';
import { RunStore } from '../../../lib/control/shared/run-store';
import type { QuotaNeed } from '../../../lib/core/quota';
import { running } from '../../core/lifecycle/support/records';
import { draws } from '../../support/draws';
import { mockClient } from '../../support/mocked-clients';
import { type FakeWorld, fakeWorld, START } from '../support/fake-world';

/** What a tick keeps for its notices and metrics. */
const TICK_RESERVE_MS = 15_000;

let world: FakeWorld;
beforeEach(() => {
  world = fakeWorld();
});

describe('500 jobs of others', () => {
  const TYPE = 'ml.m5.xlarge for training job usage';
  const calls = () => ({
    list: world.sagemaker.mock.commandCalls(ListTrainingJobsCommand).length,
    describe: world.sagemaker.mock.commandCalls(DescribeTrainingJobCommand).length,
  });
  beforeEach(() => {
    world.sagemaker.mock.on(ListTrainingJobsCommand).callsFake(({ NextToken }) => {
      const page = Number(NextToken ?? 0);
      const names = Array.from({ length: 100 }, (_, i) => ({ TrainingJobName: `other-${page}-${i}` }));
      return { TrainingJobSummaries: names, NextToken: page < 4 ? String(page + 1) : undefined };
    });
    world.sagemaker.mock
      .on(DescribeTrainingJobCommand)
      .callsFake(() => ({ ResourceConfig: { InstanceType: 'ml.m5.xlarge', InstanceCount: 1 } }));
  });

  test('are described a hundred in a pass, and listed once a minute, two pages a second', async () => {
    const began = world.now();
    expect((await othersUsage(world.reconcile, new Set())).get(TYPE)).toBe(100);
    expect(calls()).toEqual({ list: 5, describe: 100 });
    expect(world.now() - began).toBe(2000);
    for (let pass = 2; pass <= 6; pass++) await othersUsage(world.reconcile, new Set());
    expect(calls()).toEqual({ list: 5, describe: 500 });
    world.pass(60_000);
    expect((await othersUsage(world.reconcile, new Set())).get(TYPE)).toBe(500);
    expect(calls()).toEqual({ list: 10, describe: 500 });
  });

  test('are asked for only while the invocation has time', async () => {
    await othersUsage({ ...world.reconcile, remainingMs: () => 10_000 }, new Set());
    expect(calls()).toEqual({ list: 1, describe: 0 });
  });
});

test('a tick reads the descriptor of a team once, and spreads its messages', async () => {
  const record = await world.store.find(await world.launch());
  if (!record) throw new Error('no run');
  world.store.active = async () => Array.from({ length: 100 }, (_, i) => ({ ...record, runId: `${record.runId}${i}` }));
  const began = world.now();
  await onEvent(world.reconcile, { slipway: 'tick' });
  expect(world.messages).toHaveLength(101);
  expect(world.now() - began).toBe(9 * 250);

  const runs = await Promise.all([world.launch(), world.launch()]);
  const before = world.ssm.commandCalls(GetParameterCommand).length;
  for (const runId of runs) {
    const Records = [{ messageId: runId, body: JSON.stringify({ kind: 'run', runId }), eventSource: 'aws:sqs' }];
    await onEvent(world.reconcile, { Records });
  }
  expect(world.ssm.commandCalls(GetParameterCommand).length).toBe(before);
});

test('every active run is woken within a few ticks when one tick has not time for all', async () => {
  const MAX_PER_TICK = 100;
  const record = await world.store.find(await world.launch());
  if (!record) throw new Error('no run');
  const { now } = world.reconcile;
  const law = fc.asyncProperty(
    fc.integer({ min: 1, max: 1500 }),
    fc.nat({ max: 1e6 }),
    fc.integer({ min: 1, max: 3 }),
    async (runs, firstTick, every) => {
      world.store.active = async () => Array.from({ length: runs }, (_, i) => ({ ...record, runId: `r${i}` }));
      const waiting = new Set(Array.from({ length: runs }, (_, i) => `r${i}`));
      const most = 4 * Math.ceil(runs / MAX_PER_TICK);
      let ticks = 0;
      for (; waiting.size > 0 && ticks <= most; ticks++) {
        const began = now().getTime();
        const at = START + (firstTick + ticks * every) * 300_000;
        world.reconcile.now = () => new Date(at + now().getTime() - began);
        const ends = began + (MAX_PER_TICK / 10) * 250 + TICK_RESERVE_MS;
        world.reconcile.remainingMs = () => ends - now().getTime();
        world.reconcile.sleep = async (ms) => {
          world.pass(ms);
          if (now().getTime() > ends) throw new Error('the invocation has ended');
        };
        await onEvent(world.reconcile, { slipway: 'tick' });
        for (const { body } of world.messages.splice(0)) waiting.delete(JSON.parse(body).runId);
        world.sqs.resetHistory();
      }
      expect(ticks).toBeLessThanOrEqual(most);
    },
  );
  await fc.assert(law, { numRuns: draws(10) });
});

test('a tick without time for all runs still writes its metrics', async () => {
  const record = await world.store.find(await world.launch());
  if (!record) throw new Error('no run');
  world.store.active = async () => Array.from({ length: 500 }, (_, i) => ({ ...record, runId: `r${i}` }));
  const lines: string[] = [];
  world.reconcile.metrics = { teams: ['nlp'], write: (line) => lines.push(line) };
  world.reconcile.remainingMs = () => TICK_RESERVE_MS - 1;
  await onEvent(world.reconcile, { slipway: 'tick' });
  expect(lines).not.toEqual([]);
  expect(world.logged).toContain('warn: a tick had no time to wake every run');
});

test('runs are read a hundred at a time', async () => {
  const runId = await world.launch();
  const before = world.table.mock.commandCalls(BatchGetItemCommand).length;
  const found = await readAgain(world.reconcile, [runId, ...Array.from({ length: 200 }, (_, i) => `r${i}`)]);
  expect(found.size).toBe(201);
  expect([...found].filter(([, run]) => run !== undefined).map(([id]) => id)).toEqual([runId]);
  const sizes = world.table.mock
    .commandCalls(BatchGetItemCommand)
    .slice(before)
    .map(({ args: [{ input }] }) => input.RequestItems?.runs?.Keys?.length);
  expect(sizes).toEqual([100, 100, 1]);
});

test('runs that the service leaves out are asked for again after a tenth of a second, then after two', async () => {
  const runId = await world.launch();
  world.table.leaveOut(runId, 2);
  const began = world.now();
  expect((await readAgain(world.reconcile, [runId])).get(runId)).toMatchObject({ runId });
  expect(world.now() - began).toBe(300);
});

test('a run that the service leaves out each time is not taken for one that is gone', async () => {
  const runId = await world.launch();
  world.table.leaveOut(runId, 3);
  const found = await readAgain(world.reconcile, [runId, 'gone']);
  expect([...found]).toEqual([['gone', undefined]]);
});

test('an observation of a live job needs neither its run file nor the descriptor', async () => {
  const runId = await world.launch();
  world.train(`research-${runId}-a001`);
  await world.tick();
  const asked = () => world.ssm.commandCalls(GetParameterCommand).length;
  const before = asked();
  world.table.items.delete(`${runId}|INTENT`);
  world.pass(3_600_000);
  world.commit(runId, 10);
  await world.tick();
  expect(await world.store.find(runId)).toMatchObject({ state: 'running', committed: { step: 10 } });
  expect(asked()).toBe(before);
});

test('what an observation of checkpoints costs does not grow with how many there are', async () => {
  for (let step = 1; step <= 300; step++) world.commit('r', step);
  const lists = () => world.s3.mock.commandCalls(ListObjectsV2Command).length;
  const found = await listCheckpoints(world.reconcile, 's3://checkpoint-bucket/runs/nlp/r/');
  expect(found).toMatchObject({ committed: [{ step: 300 }, { step: 299 }, { step: 298 }] });
  expect(lists()).toBe(4);
  await listCheckpoints(world.reconcile, 's3://checkpoint-bucket/runs/nlp/r/', { enough: 1 });
  expect(lists()).toBe(6);
});

test('an answer has the newest lines of a timeline that fit it, and says how many do not', () => {
  const lines = Array.from({ length: 1000 }, (_, i) => ({ at: i, what: 'phase', text: `phase ${i}`, evidence: {} }));
  expect(boundedTimeline(lines)).toMatchObject({ timeline: { length: 1000 } });
  const { timeline, timelineOmitted } = boundedTimeline(lines, 10_000);
  expect(timeline.at(-1)?.text).toBe('phase 999');
  expect((timelineOmitted ?? 0) + timeline.length).toBe(1000);
  expect(JSON.stringify(timeline).length).toBeLessThanOrEqual(10_001);
});

test('of a thousand active runs a process reads again only what changed since its last list', async () => {
  const record = (i: number, note = '') => running({ runId: `r${i}`, note });
  const Items = Array.from({ length: 1000 }, (_, i) => runItem(record(i)));
  const dynamodb = mockClient(DynamoDBClient);
  dynamodb.on(QueryCommand).callsFake(() => ({ Items: structuredClone(Items) }));
  const store = new RunStore(new DynamoDBClient({ region: 'us-west-2' }), 'runs');
  const first = await store.active();
  Items[7] = runItem(record(7, 'changed'));
  const second = await store.active();
  expect(second[7]?.note).toBe('changed');
  expect(second.flatMap((run, i) => (run === first[i] ? [] : [i]))).toEqual([7]);
});

test('each quota is asked for once, however many runs need it', () => {
  const need = (name: string, needed: number) => ({ name, needed, kind: 'pool' }) as QuotaNeed;
  const runs = Array.from(
    { length: 1000 },
    (_, i) => [`r${i}`, new Map([['a', [need('x', i), need('y', 1)]]])] as const,
  );
  expect(new RunNeeds(new Map(runs)).all.map(({ name }) => name)).toEqual(['x', 'y']);
});
