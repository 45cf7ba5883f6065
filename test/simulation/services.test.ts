import { expect, test } from 'vitest';
import { type Item, runKey } from '../../lib/control/shared/items';
import { ACTIVE_INDEX } from '../../lib/core/contracts/storage';
import { VirtualClock } from '../../tools/simulation/core/clock';
import { Random } from '../../tools/simulation/core/random';
import { RateLimit } from '../../tools/simulation/core/rate-limit';
import { readScenario } from '../../tools/simulation/scenario/load';
import { holds } from '../../tools/simulation/services/expression';
import { KNOWN_CALLS } from '../../tools/simulation/services/known-calls';
import { Watch } from '../../tools/simulation/world/watch';
import { World } from '../../tools/simulation/world/world';
import { ENVIRONMENT } from './support';

const item = { name: { S: 'a' }, count: { N: '10' } };
const values = {
  ExpressionAttributeNames: { '#n': 'name' },
  ExpressionAttributeValues: { ':n': { N: '9' }, ':a': { S: 'a' } },
};

test.each([
  ['attribute_exists(#n)', true],
  ['attribute_not_exists(other)', true],
  ['#n = :a AND count > :n', true],
  ['#n <> :a OR count <= :n', false],
  ['NOT (begins_with(#n, :a) AND count BETWEEN :n AND :n)', true],
  ['count IN (:n, :a)', false],
  ['other = :a', false],
])('DynamoDB judges %s as %s', (expression, verdict) => {
  expect(holds(expression, item, values)).toBe(verdict);
});

test('fails: an expression that is not known', () => {
  expect(() => holds('attribute_type(#n, :a)', item, values)).toThrow('attribute_type');
});

test('a rate allows one second of calls at once, and then so many a second', () => {
  const limit = new RateLimit(2);
  expect([0, 0, 0, 499, 500, 1000, 1000].map((at) => limit.take(at))).toEqual([
    true,
    true,
    false,
    false,
    true,
    true,
    false,
  ]);
});

test('events of one instant run in the order in which they were scheduled', async () => {
  const clock = new VirtualClock();
  const seen: string[] = [];
  for (const [at, name] of [
    [5, 'b'],
    [3, 'a'],
    [5, 'c'],
    [9, 'd'],
  ] as const)
    clock.schedule(at, () => seen.push(name));
  await clock.runUntil(5);
  expect([seen.join(''), clock.now]).toEqual(['abc', 5]);
});

test('the same seed draws the same numbers, evenly', () => {
  const draws = (seed: number) =>
    Array.from(
      { length: 2000 },
      (
        (r) => () =>
          r.next()
      )(new Random(seed)),
    );
  expect(draws(1)).toEqual(draws(1));
  expect(draws(1)[0]).not.toBe(draws(2)[0]);
  expect(draws(3).reduce((a, b) => a + b, 0) / 2000).toBeCloseTo(0.5, 1);
});

test('the calls that a scenario may name are those that the services answer', () => {
  expect([...world().gateway.names()].sort()).toEqual([...KNOWN_CALLS].sort());
});

function world(): World {
  const { value } = readScenario({ schema: 1, environment: ENVIRONMENT }, () => '');
  if (!value) throw new Error('the scenario was not read');
  return new World(value, 1, new Watch());
}

test('one read of several items takes a hundred keys, each once', () => {
  const { table } = world();
  const read = (ids: readonly string[]) => {
    const Keys = ids.map((id) => ({ runId: { S: id }, item: { S: 'RUN' } }));
    return table.operations.BatchGetItem?.run({ RequestItems: { runs: { Keys } } } as never, {} as never);
  };
  const ids = Array.from({ length: 101 }, (_, i) => `r${i}`);
  expect(read(ids.slice(1))).toMatchObject({ Responses: { runs: [] }, UnprocessedKeys: {} });
  expect(() => read(ids)).toThrow('Too many items');
  expect(() => read(['a', 'a'])).toThrow('duplicates');
});

test('a query of an index finds what was written since the last one, in the order and with the key that it asks for', () => {
  const { table } = world();
  const write = (id: string, more: Item = {}) => table.overwrite({ ...runKey(id), ...more });
  const active = { active: { S: ACTIVE_INDEX.value } };
  const query = {
    IndexName: ACTIVE_INDEX.name,
    KeyConditionExpression: '#key = :value',
    ExpressionAttributeNames: { '#key': 'active' },
    ExpressionAttributeValues: { ':value': { S: ACTIVE_INDEX.value } },
  };
  const find = (input: object = query) => {
    const answer = table.operations.Query?.run(input as never, {} as never) as { Items?: Item[] } | undefined;
    return answer?.Items?.map(({ runId }) => runId?.S);
  };
  write('b', active);
  expect(find()).toEqual(['b']);
  write('a', active);
  expect(find()).toEqual(['a', 'b']);
  expect(find()).toEqual(['a', 'b']);
  expect(find({ ...query, ScanIndexForward: false })).toEqual(['b', 'a']);
  expect(find({ ...query, ExpressionAttributeValues: { ':value': { S: 'other' } } })).toEqual([]);
  expect(find({ ...query, Limit: 1 })).toEqual(['a']);
  write('b');
  expect(find()).toEqual(['a']);
});
