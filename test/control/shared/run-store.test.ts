import { QueryCommand, TransactionCanceledException, TransactWriteItemsCommand } from '@aws-sdk/client-dynamodb';
import { beforeEach, describe, expect, test } from 'vitest';
import { remember } from '../../../lib/control/shared/bounded-map';
import { runItem } from '../../../lib/control/shared/items';
import { ServiceQuotaReader } from '../../../lib/control/shared/limit-reader';
import { queuedRun, runningRun, usesInstances } from '../../../lib/control/shared/queue-runs';
import { RunStore } from '../../../lib/control/shared/run-store';
import { ITEM } from '../../../lib/core/contracts/storage';
import { attempt, HOUR, running, T0 } from '../../core/lifecycle/support/records';
import { fakeTable } from '../support/fake-table';

let table: ReturnType<typeof fakeTable>;
let store: RunStore;
beforeEach(() => {
  table = fakeTable();
  store = new RunStore(table.client, 'runs');
});

describe('a write of the run table', () => {
  const cancelled = (...codes: (string | undefined)[]) =>
    new TransactionCanceledException({
      message: 'cancelled',
      $metadata: {},
      CancellationReasons: codes.map((Code) => ({ Code })),
    });
  const saved = (error: Error) => {
    table.mock.on(TransactWriteItemsCommand).rejects(error);
    return store.save(running(), running(), []).catch((failed: Error) => failed.message);
  };

  test.each([
    [cancelled('ConditionalCheckFailed'), false],
    [cancelled('None', 'TransactionConflict'), false],
    [cancelled('ThrottlingError'), 'cancelled'],
    [new TransactionCanceledException({ message: 'no reason', $metadata: {} }), 'no reason'],
    [Object.assign(new Error('denied'), { name: 'AccessDeniedException' }), 'denied'],
  ])('that fails with %o is a lost race, or thrown', async (error, expected) => {
    expect(await saved(error)).toBe(expected);
  });

  test('of reports about GPUs says whether they are stored', async () => {
    const evidence = {
      uuid: 'GPU-1',
      team: 'nlp',
      kind: 'gpu',
      at: T0,
      runId: 'r',
      jobName: 'j',
      host: 'algo-1',
    } as const;
    expect(await store.saveGpuEvidence([{ ...evidence, reason: 'lost' }])).toBe(true);
    table.mock.on(TransactWriteItemsCommand).rejects(cancelled('TransactionConflict'));
    expect(await store.saveGpuEvidence([{ ...evidence, reason: 'lost' }])).toBe(false);
  });
});

describe('a read of the run table', () => {
  test('says that the environment is closed only where it is written so', async () => {
    expect(await store.isClosed()).toBe(false);
    const item = { runId: { S: ITEM.closed }, item: { S: ITEM.closed } };
    for (const [more, expected] of [
      [{}, false],
      [{ isClosed: { BOOL: false } }, false],
      [{ isClosed: { BOOL: true } }, true],
    ] as const) {
      table.items.set(`${ITEM.closed}|${ITEM.closed}`, { ...item, ...more });
      expect(await store.isClosed()).toBe(expected);
    }
  });

  test('of the queue is nothing before its first pass, and what was written last after it', async () => {
    expect(await store.findQueue()).toBeUndefined();
    const usage = { at: T0, hours: { nlp: { pool: 2 } }, held: {} };
    await store.saveQueue({ usage, shares: { nlp: 2 } });
    expect(await store.findQueue()).toMatchObject({ usage, shares: { nlp: 2 } });
  });

  test('of the newest runs ends with the page that has enough', async () => {
    let pages = 0;
    table.mock.on(QueryCommand).callsFake(() => {
      pages += 1;
      return { Items: [], LastEvaluatedKey: pages < 3 ? { runId: { S: 'x' } } : undefined };
    });
    expect(await store.ofTeam('nlp', 5)).toEqual([]);
    expect(pages).toBe(3);
    expect(table.mock.commandCalls(QueryCommand)[0]?.args[0].input).toMatchObject({ TableName: 'runs' });
  });

  test('of the newest runs asks for no page more than it needs', async () => {
    const items = [1, 2].map((n) => runItem(running({ runId: `r-${n}` })));
    table.mock.on(QueryCommand).resolves({ Items: items, LastEvaluatedKey: { runId: { S: 'r-2' } } });
    expect((await store.ofTeam('nlp', 2)).map(({ runId }) => runId)).toEqual(['r-1', 'r-2']);
    expect(table.mock.commandCalls(QueryCommand)).toHaveLength(1);
    expect((await store.ofTeam('nlp', 3)).map(({ runId }) => runId)).toEqual(['r-1', 'r-2', 'r-1']);
  });

  test('of the active runs asks their index, and takes an answer without items for none', async () => {
    table.mock.on(QueryCommand).resolves({});
    expect(await store.active()).toEqual([]);
    expect(table.mock.commandCalls(QueryCommand)[0]?.args[0].input).toMatchObject({
      IndexName: 'active-runs',
      ExpressionAttributeValues: { ':value': { S: 'active' } },
    });
  });
});

test('what a text says is read once, while it is among the newest', () => {
  const read: string[] = [];
  const lengthOf = remember((text: string) => {
    read.push(text);
    return { length: text.length };
  }, 2);
  expect(lengthOf('a')).toBe(lengthOf('a'));
  lengthOf('bb');
  expect(read).toEqual(['a', 'bb']);
  lengthOf('ccc');
  expect(lengthOf('bb').length).toBe(2);
  expect(read).toEqual(['a', 'bb', 'ccc']);
  lengthOf('a');
  expect(read).toEqual(['a', 'bb', 'ccc', 'a']);
  const given = { length: 7 };
  lengthOf.keep('kept', given);
  expect(lengthOf('kept')).toBe(given);
});

describe('a run as the queue counts it', () => {
  test('uses instances from the first secondary status that has some, not while it waits for them', () => {
    const withStatus = (secondaryStatus: string, phase = 'created') =>
      usesInstances(running({ attempt: attempt({ phase, secondaryStatus } as never) }));
    expect(withStatus('Training')).toBe(true);
    expect(withStatus('Downloading')).toBe(true);
    expect(withStatus('Pending')).toBe(false);
    expect(withStatus('Training', 'intent')).toBe(false);
    expect(usesInstances(running({ attempt: undefined }))).toBe(false);
  });

  test('waits since it was asked to leave, where that is after it joined the queue', () => {
    const queued = (preemptedAt?: number) => queuedRun(running({ preemptedAt } as never), {} as never);
    const { queuedAt } = queued();
    expect(queued()).not.toHaveProperty('waitingSince');
    expect(queued(queuedAt)).not.toHaveProperty('waitingSince');
    expect(queued(queuedAt + HOUR)).toHaveProperty('waitingSince', queuedAt + HOUR);
  });

  test('holds the instances of its capacity option', () => {
    const run = running();
    expect(runningRun(run, {} as never)).toMatchObject({ runId: run.runId, team: run.team });
    expect(runningRun(run, {} as never).instances).toBeGreaterThan(0);
  });
});

describe('applied limits', () => {
  const reader = () => {
    const world = { now: 0, slept: 0, reads: [] as string[], answer: { Quota: { Value: 8 } } as object | Error };
    const client = {
      send: async ({ input }: { input: { QuotaCode: string } }) => {
        world.reads.push(input.QuotaCode);
        if (world.answer instanceof Error) throw world.answer;
        return world.answer;
      },
    };
    const sleep = async (ms: number) => {
      world.slept += ms;
    };
    return { world, limits: new ServiceQuotaReader(client as never, { now: () => world.now, sleep }) };
  };

  test('are read once a quarter of an hour, a fifth of a second apart', async () => {
    const { world, limits } = reader();
    const needs = [{ name: 'a', code: 'L-1' }, { name: 'b', code: 'L-2' }, { name: 'c' }];
    expect(Object.fromEntries(await limits.read(needs as never))).toEqual({
      a: { value: 8, code: 'L-1' },
      b: { value: 8, code: 'L-2' },
      c: { unknown: 'no quota code is known for it' },
    });
    expect([world.reads, world.slept]).toEqual([['L-1', 'L-2'], 200]);
    world.now = 899_999;
    await limits.read(needs as never);
    expect(world.reads).toHaveLength(2);
    world.now = 900_000;
    await limits.read(needs as never);
    expect([world.reads.length, world.slept]).toEqual([4, 600]);
  });

  test('that cannot be read are what was read last, else unknown', async () => {
    const { world, limits } = reader();
    world.answer = new Error('throttled');
    const read = async () => (await limits.read([{ name: 'a', code: 'L-1' }])).get('a');
    expect(await read()).toHaveProperty('unknown');
    world.answer = { Quota: { Value: 4 } };
    world.now = 10_000;
    expect(await read()).toMatchObject({ value: 4 });
    world.now = 1_000_000;
    world.answer = new Error('throttled');
    expect(await read()).toMatchObject({ value: 4 });
    expect(world.reads).toHaveLength(3);
  });
});

describe('a query of the run table', () => {
  const asked = () => table.mock.commandCalls(QueryCommand)[0]?.args[0].input;

  test('of a team is that of its newest runs', async () => {
    await store.ofTeam('nlp', 5);
    expect(asked()).toMatchObject({
      IndexName: 'team-runs',
      ExpressionAttributeNames: { '#key': 'team' },
      ExpressionAttributeValues: { ':value': { S: 'nlp' } },
      ScanIndexForward: false,
      Limit: 5,
    });
  });

  test.each([
    ['', 'EVENT#'],
    ['2026-11-21T12:00:00.000Z', 'EVENT#2026-11-21T12:00:00.000Z'],
    ['2026-11-21T12:00:00.000Z#3.0', 'EVENT#2026-11-21T12:00:00.000Z#3.0!'],
  ])('of a timeline from "%s" begins there, or after the place of a line', async (from, first) => {
    const line = { at: T0, what: 'x', text: 'y', evidence: {} };
    table.mock.on(QueryCommand).resolves({
      Items: [{ item: { S: 'EVENT#2026-11-21T12:00:00.000Z#4.0' }, document: { S: JSON.stringify(line) } }],
    });
    expect(await store.timelinePage('r', from, 7)).toEqual([{ cursor: '2026-11-21T12:00:00.000Z#4.0', line }]);
    expect(asked()).toMatchObject({
      ExpressionAttributeValues: { ':run': { S: 'r' }, ':from': { S: first }, ':to': { S: 'EVENT#~' } },
      Limit: 7,
    });
    table.mock.on(QueryCommand).resolves({});
    expect(await store.timelinePage('r', from, 7)).toEqual([]);
  });

  test('of attempts is that of one run', async () => {
    expect(await store.attempts('r')).toEqual([]);
    expect(asked()).toMatchObject({
      ConsistentRead: true,
      ExpressionAttributeNames: { '#run': 'runId', '#item': 'item' },
      ExpressionAttributeValues: { ':run': { S: 'r' }, ':prefix': { S: 'ATTEMPT#' } },
    });
  });
});

test('unreadable items that somebody was told of are none at first, and what was written last', async () => {
  expect(await store.findNotified()).toEqual([]);
  await store.saveNotified(['a', 'b']);
  expect(await store.findNotified()).toEqual(['a', 'b']);
});

test('the run that a request made is known by its team and its id', async () => {
  expect(await store.findRequest('nlp', 'r1')).toBeUndefined();
});
