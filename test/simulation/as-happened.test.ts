import { afterEach, beforeAll, expect, test } from 'vitest';
import { fromStoredNames, toStoredNames } from '../../lib/control/shared/items';
import type { Attempt, RunRecord } from '../../lib/core/lifecycle/record';
import { AsHappened } from '../../tools/simulation/invariants/happened/as-happened';
import type { Scene } from '../../tools/simulation/invariants/invariant';
import { TeamsApart } from '../../tools/simulation/invariants/teams-apart';
import { Troubles } from '../../tools/simulation/invariants/troubles';
import { readScenario } from '../../tools/simulation/scenario/load';
import type { Item } from '../../tools/simulation/services/expression';
import { play } from '../../tools/simulation/simulate';
import type { SimRun } from '../../tools/simulation/world/sim-run';
import type { World } from '../../tools/simulation/world/world';
import { ENVIRONMENT, LIMITS, run } from './support';

/** A run that is interrupted, loses a host, and completes. */
const { value } = readScenario(
  {
    schema: 1,
    environment: ENVIRONMENT,
    limits: LIMITS,
    runs: [run('a')],
    faults: [
      { at: '2h', job: 'a#1', status: 'Interrupted', minutes: 25 },
      { at: '4h', job: 'a#1', loses: 'network' },
    ],
    until: '24h',
  },
  () => '',
);

let world: World;
beforeAll(async () => {
  if (!value) throw new Error('the scenario was not read');
  ({ world } = await play(value, 1));
}, 120_000);

/** Each undoes a change of a test to the world, which the tests share. */
const undo: (() => void)[] = [];
afterEach(() => {
  for (const one of undo.splice(0).reverse()) one();
  expect(verdict().holds).toBe(true);
});

const verdict = () => {
  const invariant = new AsHappened();
  invariant.enter({ world, troubles: new Troubles() } as unknown as Scene);
  invariant.onEnd();
  return invariant.verdict;
};

/** Replaces the document of an item until the test has ended. */
function replaceDocument(item: Item, document: object): void {
  const before = item.document;
  undo.push(() => Object.assign(item, { document: before }));
  item.document = { S: JSON.stringify(document) };
}

/** Writes something else into the document of the run's first item of that kind. */
function rewrite<T>(kind: string, change: (document: T) => void): void {
  const [first] = world.table.itemsOf(world.runs[0]?.runId ?? '').filter(({ item }) => item?.S?.startsWith(kind));
  if (!first) throw new Error(`no item ${kind}`);
  const document = fromStoredNames(JSON.parse(first.document?.S ?? '') as T & object);
  change(document);
  replaceDocument(first, toStoredNames(document));
}

test('what the product wrote is what happened', () => {
  expect(verdict()).toEqual({ name: 'as-happened', holds: true });
});

test.each<[string, (attempt: Attempt) => void]>([
  ['failureClass', (attempt) => Object.assign(attempt, { failureClass: 'user-code' })],
  ['secondaryStatus', (attempt) => Object.assign(attempt, { secondaryStatus: 'Stopped' })],
  [
    'trainingStartedAt',
    (attempt) => Object.assign(attempt, { trainingStartedAt: (attempt.trainingStartedAt ?? 0) + 60_000 }),
  ],
  ['endedAt', (attempt) => Object.assign(attempt, { endedAt: (attempt.endedAt ?? 0) - 60_000 })],
  ['cost, USD', (attempt) => Object.assign(attempt, { costUsd: 1.02 * (attempt.costUsd ?? 0) })],
  ['pauses', (attempt) => Object.assign(attempt, { pauses: undefined })],
  ['firstStep', (attempt) => Object.assign(attempt, { firstStep: 2 })],
  ['lastStep', (attempt) => Object.assign(attempt, { lastStep: (attempt.lastStep ?? 0) - 1 })],
  ['step that it began at', (attempt) => Object.assign(attempt, { resumeFrom: { uri: '', step: 1, attempt: 1 } })],
  ['is none of its own', (attempt) => Object.assign(attempt, { capacityOptionId: 'other' })],
])('as-happened breaks where the table has another %s', (what, change) => {
  rewrite<Attempt>('ATTEMPT#', change);
  expect(verdict().evidence).toContain(what);
});

test('as-happened breaks where the counters say something else than the attempts', () => {
  const [ended] = world.table
    .itemsOf(world.runs[0]?.runId ?? '')
    .filter(({ document }) => document?.S?.includes('"what":"attempt-ended"'));
  if (!ended) throw new Error('no attempt has ended');
  const line = JSON.parse(ended.document?.S ?? '');
  const counted = { ...line.evidence, budgets: { ...line.evidence.budgets, failures: 1 } };
  replaceDocument(ended, { ...line, evidence: counted });
  expect(verdict().evidence).toMatch(/0 attempts count against limits\.maxAttempts, and 1 are counted/);
  const none = { ...line.evidence, budgets: { ...line.evidence.budgets, byClass: {} } };
  replaceDocument(ended, { ...line, evidence: none });
  expect(verdict().evidence).toMatch(/failures of class platform are 1/);
});

test.each<[string, (record: RunRecord) => void]>([
  [
    'usage of capacity option',
    ({ policy: { capacityOptions } }) => Object.assign(capacityOptions[0] ?? {}, { usage: 'spot' }),
  ],
  [
    'USD an hour of capacity option',
    ({ policy: { capacityOptions } }) => Object.assign(capacityOptions[0] ?? {}, { usdPerHour: 1 }),
  ],
  ['waits for capacity', ({ budgets, createdAt }) => Object.assign(budgets, { capacitySince: createdAt - 1 })],
])('as-happened breaks where the record has another %s', (what, change) => {
  const [first] = world.runs;
  if (!first) throw new Error('no run');
  const record = structuredClone(first.record) as RunRecord;
  change(record);
  undo.push(() => Reflect.deleteProperty(first, 'record'));
  Object.defineProperty(first, 'record', { value: record, configurable: true });
  expect(verdict().evidence).toContain(what);
});

test.each([
  ['was granted', { ok: true }],
  ['was not answered like one of an unknown run', undefined],
  ['was not answered like one of an unknown run', { ok: false, issues: [{ rule: 'control/payload' }] }],
])("teams-apart breaks where another team's call %s", (what, answer) => {
  const invariant = new TeamsApart();
  invariant.enter({ world: { clock: { now: 1 } }, troubles: new Troubles() } as unknown as Scene);
  invariant.onStranger({ id: 'a' } as SimRun, 'stop', { ok: false, issues: [{ rule: 'run/unknown' }] } as never);
  expect(invariant.verdict.holds).toBe(true);
  invariant.onStranger({ id: 'a' } as SimRun, 'stop', answer as never);
  expect(invariant.verdict.evidence).toContain(what);
});
