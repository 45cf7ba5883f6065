import { describe, expect, test } from 'vitest';
import { admit, PATIENCE_MS, type QueueInput } from '../../../lib/core/queue/admit';
import {
  advanceUsage,
  NO_USAGE,
  type QueuedRun,
  queueOrder,
  type RunningRun,
  type TeamFacts,
} from '../../../lib/core/queue/order';
import { choosePreemptions, type PreemptibleRun } from '../../../lib/core/queue/preempt';

const NOW = Date.UTC(2026, 10, 21);
const HOUR = 3_600_000;
const pool = (limit: number) => ({ limit, usedByOthers: 0, name: 'pool' });
const queued = (runId: string, p5: number, changes: Partial<QueuedRun> = {}): QueuedRun => ({
  runId,
  team: 'nlp',
  instances: p5,
  needs: { p5 },
  priority: 0,
  queuedAt: NOW,
  after: [],
  ...changes,
});
const holding = (team: string, p5: number): RunningRun => ({ runId: `of-${team}`, team, instances: p5, needs: { p5 } });
const teams = (waiting: string[], running: RunningRun[], facts: Partial<TeamFacts> = {}) =>
  queueOrder(
    waiting.map((team) => queued(team, 1, { team })),
    running,
    { shares: {}, pools: { p5: pool(100) }, ...facts },
    NOW,
  ).map(({ team }) => team);
const used = (hours: Record<string, number>) => ({
  usage: { ...NO_USAGE, hours: Object.fromEntries(Object.entries(hours).map(([team, p5]) => [team, { p5 }])) },
});

describe('the turn of a team', () => {
  test('comes after those that hold less, and among equals by name', () => {
    expect(teams(['b', 'a'], [])).toEqual(['a', 'b']);
    expect(teams(['a', 'b'], [holding('a', 8)])).toEqual(['b', 'a']);
    expect(teams(['a', 'b'], [holding('a', 8), holding('b', 9)])).toEqual(['a', 'b']);
  });

  test('adds an hour of what it holds to what it has used', () => {
    expect(teams(['a', 'b'], [holding('a', 8)], used({ b: 7, z: 100 }))).toEqual(['b', 'a']);
    expect(teams(['a', 'b'], [holding('a', 8)], used({ b: 9, z: 100 }))).toEqual(['a', 'b']);
  });

  test('comes last while it is above its entitlement, however much others hold', () => {
    expect(teams(['a', 'b'], [holding('b', 90)], used({ a: 2 }))).toEqual(['b', 'a']);
  });

  test('weighs by its queue share', () => {
    expect(teams(['a', 'b'], [holding('a', 8), holding('b', 5)], { shares: { a: 2 } })).toEqual(['a', 'b']);
    expect(teams(['a', 'b'], [holding('a', 8), holding('b', 5)])).toEqual(['b', 'a']);
  });
});

test('a clock that was put back makes no run wait less than not at all', () => {
  const later = queued('later', 1, { queuedAt: NOW + 100 * HOUR });
  const order = queueOrder([later, queued('now', 1, { priority: -1 })], [], { shares: {} }, NOW);
  expect(order.map(({ runId }) => runId)).toEqual(['later', 'now']);
});

describe('a run that waits for room', () => {
  const old = (changes: Partial<QueuedRun>) =>
    queued('old', 8, { queuedAt: NOW - PATIENCE_MS, priority: 9, ...changes });
  const input = (waiting: QueuedRun[], changes: Partial<QueueInput> = {}): QueueInput => ({
    waiting,
    running: [holding('nlp', 4)],
    pools: { p5: pool(8), p4: pool(2) },
    shares: {},
    now: NOW,
    ...changes,
  });
  const admitted = (waiting: QueuedRun[], changes: Partial<QueueInput> = {}) => admit(input(waiting, changes)).admitted;

  test('keeps the pools that it lacks, not one in which it would just fit', () => {
    const both = old({ needs: { p5: 8, p4: 2 } });
    const other = queued('other', 1, { needs: { p4: 1 } });
    expect(admitted([both, other])).toEqual(['other']);
    expect(
      admitted([{ ...both, needs: { p5: 8, p4: 3 } }, other], {
        pools: { p5: pool(8), p4: pool(3) },
        running: [{ ...holding('nlp', 4), needs: { p5: 4, p4: 1 } }],
      }),
    ).toEqual([]);
  });

  test('lets a team above its entitlement pass that waits longer, until it has held back one below', () => {
    const facts = { usage: { ...NO_USAGE, hours: { rich: { p5: 50 }, nlp: { p5: 1 } } } };
    const rich = queued('rich', 2, { team: 'rich', queuedAt: NOW - 5 * HOUR });
    expect(admitted([old({}), rich], facts)).toEqual(['rich']);
    expect(admitted([old({}), queued('young', 2), rich], facts)).toEqual([]);
    expect(admitted([old({}), { ...rich, runId: 'rich-young', queuedAt: NOW }, rich], facts)).toEqual(['rich']);
  });
});

describe('a pool is kept', () => {
  const at = (hours: number) => NOW - hours * HOUR;
  const pass = (waiting: QueuedRun[], limits: Record<string, number> = { p5: 8 }, changes: Partial<QueueInput> = {}) =>
    admit({
      waiting,
      running: [holding('nlp', 4)],
      pools: Object.fromEntries(Object.entries(limits).map(([name, limit]) => [name, pool(limit)])),
      shares: {},
      now: NOW,
      ...changes,
    });
  const whyOf = (result: ReturnType<typeof pass>, runId: string) => result.waits.find((w) => w.runId === runId)?.why;

  test('for the run that waits longest, of equal ones for the first', () => {
    const [a, b] = [queued('a', 8, { queuedAt: at(3), priority: 9 }), queued('b', 8, { queuedAt: at(5), priority: 8 })];
    const small = queued('small', 1);
    expect(whyOf(pass([a, b, small]), 'small')).toBe('pool is kept for b, which waits longer');
    expect(whyOf(pass([a, { ...b, queuedAt: at(3) }, small]), 'small')).toBe('pool is kept for a, which waits longer');
    expect(whyOf(pass([{ ...a, queuedAt: at(9) }, b, small]), 'small')).toBe('pool is kept for a, which waits longer');
  });

  test('also against a run that joined in the same moment, not against one that waits longer', () => {
    const old = queued('old', 8, { queuedAt: at(3), priority: 9 });
    expect(pass([old, queued('same', 1, { queuedAt: at(3) })]).admitted).toEqual([]);
    expect(pass([old, queued('older', 1, { queuedAt: at(3) - 1 })]).admitted).toEqual(['older']);
  });

  test('only for a run that could start in all of its pools although all of ours ended', () => {
    const both = queued('both', 8, { queuedAt: at(3), priority: 9, needs: { p5: 8, p4: 2 } });
    expect(pass([both, queued('small', 1)], { p5: 8, p4: 2 }).admitted).toEqual([]);
    expect(pass([both, queued('small', 1)], { p5: 8, p4: 1 }).admitted).toEqual(['small']);
  });

  test('not for one in its back-off, and not before it has waited an hour', () => {
    const old = queued('old', 8, { queuedAt: at(3), priority: 9 });
    expect(pass([{ ...old, notBefore: NOW + 1 }, queued('small', 1)]).admitted).toEqual(['small']);
    expect(pass([{ ...old, queuedAt: at(1) + 1 }, queued('small', 1)]).admitted).toEqual(['small']);
    expect(pass([{ ...old, queuedAt: at(1) }, queued('small', 1)]).admitted).toEqual([]);
  });
});

test('a pool of which nothing is known is no reason to ask nobody', () => {
  const urgent = queued('urgent', 4, { priority: 5, queuedAt: NOW - HOUR, needs: { p5: 4, other: 1 } });
  const one: PreemptibleRun = { run: queued('one', 4), trainingSince: NOW - 9 * HOUR, isRequested: false };
  const { runId, team, instances, needs } = one.run;
  const input = {
    waiting: [urgent],
    running: [{ runId, team, instances, needs }],
    pools: { p5: pool(4) },
    shares: {},
    now: NOW,
  };
  expect(choosePreemptions(input, [one])).toEqual([{ runId: 'one', for: 'urgent' }]);
});

test('of the jobs that would leave only those do whose room is needed, the last ones of them', () => {
  const job = (runId: string, p5: number, hours: number): PreemptibleRun => ({
    run: queued(runId, p5, { queuedAt: NOW - 9 * HOUR }),
    trainingSince: NOW - hours * HOUR,
    isRequested: false,
  });
  const running = [job('one', 1, 2), job('two', 2, 3), job('three', 2, 4)];
  const urgent = queued('urgent', 4, { priority: 5, queuedAt: NOW - HOUR });
  const chosen = choosePreemptions(
    {
      waiting: [urgent],
      running: running.map(({ run: { runId, team, instances, needs } }) => ({ runId, team, instances, needs })),
      pools: { p5: pool(5) },
      shares: {},
      now: NOW,
    },
    running,
  );
  expect(chosen.map(({ runId }) => runId)).toEqual(['two', 'three']);
});

test('the first pass remembers what is held, and books nothing for the time before it', () => {
  const held = { nlp: { p5: 8 } };
  expect(advanceUsage(NO_USAGE, held, NOW)).toEqual({ at: NOW, hours: {}, held });
});

test('use that has decayed to seconds is forgotten', () => {
  const left = (p5: number) => advanceUsage({ at: NOW, hours: { nlp: { p5 } }, held: {} }, {}, NOW).hours.nlp;
  expect(left(0.001)).toEqual({});
  expect(left(0.0011)).toEqual({ p5: 0.0011 });
  const back = advanceUsage({ at: NOW, hours: { nlp: { p5: 8 } }, held: { nlp: { p5: 8 } } }, {}, NOW - HOUR);
  expect(back.hours.nlp).toEqual({ p5: 8 });
});
