import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { admit, type QueueInput } from '../../../lib/core/queue/admit';
import type { QueuedRun, QueueSize, RunningRun } from '../../../lib/core/queue/order';
import { chooseGrowth, type GrowingRun } from '../../../lib/core/queue/preempt';

const NOW = Date.UTC(2026, 10, 21);
const size = (instances: number): QueueSize => ({
  capacityOptionId: `as-written@${instances}`,
  instances,
  needs: { p5: instances },
});
const queued = (
  runId: string,
  instances: number,
  smaller: number[] = [],
  rest: Partial<QueuedRun> = {},
): QueuedRun => ({
  ...size(instances),
  runId,
  team: 'nlp',
  priority: 0,
  queuedAt: NOW - 1000,
  after: [],
  smaller: smaller.map(size),
  ...rest,
});
const holding = (runId: string, instances: number) => ({ ...size(instances), runId, team: 'nlp' });
const input = (waiting: QueuedRun[], running: readonly RunningRun[], limit: number): QueueInput => ({
  waiting,
  running,
  pools: { p5: { limit, usedByOthers: 0, name: 'p5' } },
  shares: {},
  now: NOW,
});

describe('an elastic run that waits', () => {
  const admitted = (limit: number, running = 0) =>
    admit(input([queued('e', 8, [4, 2])], [holding('x', running)], limit));

  test.each([
    [8, 'as it asks first', {}],
    [7, 'with the largest size that fits', { e: 'as-written@4' }],
    [3, 'with its smallest', { e: 'as-written@2' }],
  ])('starts with %i free %s', (limit, _, sizes) => {
    expect(admitted(limit)).toMatchObject({ admitted: ['e'], sizes });
  });

  test('waits for its smallest size', () => {
    expect(admitted(9, 8).waits).toEqual([{ runId: 'e', why: 'p5: needs 2, 1 of 9 are free' }]);
  });

  test('keeps no more room than its smallest size lacks', () => {
    const old = queued('old', 8, [4], { queuedAt: NOW - 2 * 3_600_000 });
    const { admitted: started } = admit(input([old, queued('young', 1)], [holding('x', 9)], 10));
    expect(started).toEqual([]);
    expect(admit(input([old, queued('young', 1)], [holding('x', 6)], 10))).toMatchObject({ admitted: ['old'] });
  });
});

describe('a running elastic run', () => {
  const growing = (runId: string, has: number, larger: number[]): GrowingRun => ({
    run: holding(runId, has),
    larger: larger.map(size),
  });
  const grown = (given: QueueInput, runs: GrowingRun[]) => Object.fromEntries(chooseGrowth(given, admit(given), runs));

  test('gets the largest size for which there is room', () => {
    const e = growing('e', 2, [8, 4]);
    expect(grown(input([], [e.run], 8), [e])).toEqual({ e: 'as-written@8' });
    expect(grown(input([], [e.run], 7), [e])).toEqual({ e: 'as-written@4' });
    expect(grown(input([], [e.run], 3), [e])).toEqual({});
  });

  test('gets nothing of a pool in which somebody who waits lacks room', () => {
    const e = growing('e', 2, [4]);
    expect(grown(input([queued('w', 7)], [e.run], 8), [e])).toEqual({});
  });

  test('gets nothing of a pool that could not be read', () => {
    const e = growing('e', 2, [8, 4]);
    const given = input([], [e.run], 8);
    const unread = { ...given, pools: { p5: { limit: null, usedByOthers: 0, isUnread: true, name: 'p5' } } };
    expect(grown(unread, [e])).toEqual({});
  });

  test('gets what those who start now leave', () => {
    const e = growing('e', 2, [8, 4]);
    expect(grown(input([queued('w', 4)], [e.run], 10), [e])).toEqual({ e: 'as-written@4' });
  });

  test('the first gets room before the second, and the same instance is given once', () => {
    const [a, b] = [growing('a', 1, [4, 2]), growing('b', 1, [4, 2])];
    expect(grown(input([], [a.run, b.run], 6), [a, b])).toEqual({ a: 'as-written@4', b: 'as-written@2' });
  });

  describe('of several pools', () => {
    const both = (p5: number, p4: number): QueueSize => ({
      capacityOptionId: `as-written@${p5}`,
      instances: p5 + p4,
      needs: { p5, p4 },
    });
    const two = (waiting: QueuedRun[], running: readonly RunningRun[], p5: number, p4: number): QueueInput => ({
      ...input(waiting, running, p5),
      pools: {
        p5: { limit: p5, usedByOthers: 0, name: 'p5' },
        p4: { limit: p4, usedByOthers: 0, name: 'p4' },
      },
    });
    const e = { run: { ...both(1, 1), runId: 'e', team: 'nlp' }, larger: [both(2, 2)] };

    test('each must have room for what the size adds', () => {
      expect(grown(two([], [e.run], 2, 2), [e])).toEqual({ e: 'as-written@2' });
      expect(grown(two([], [e.run], 2, 1), [e])).toEqual({});
      expect(grown(two([], [e.run], 1, 2), [e])).toEqual({});
    });

    test('one in which nothing is added may be full', () => {
      const sameP4 = { ...e, larger: [both(2, 1)] };
      expect(grown(two([], [e.run], 2, 1), [sameP4])).toEqual({ e: 'as-written@2' });
    });

    test('one in which nobody lacks room is given although somebody waits for the other', () => {
      const waits = queued('w', 1, [], { needs: { p4: 4 } });
      expect(grown(two([waits], [e.run], 9, 4), [{ ...e, larger: [both(2, 1)] }])).toEqual({ e: 'as-written@2' });
      expect(grown(two([waits], [e.run], 9, 4), [e])).toEqual({});
    });

    test('one without a known limit of its own is open', () => {
      const { p5 } = two([], [], 9, 9).pools;
      const given = { ...two([], [e.run], 9, 9), pools: { p5 } } as QueueInput;
      expect(grown(given, [e])).toEqual({ e: 'as-written@2' });
    });
  });

  test('a waiting run that lacks no room, because it waits for another one, keeps nothing from it', () => {
    const e = growing('e', 2, [4]);
    expect(grown(input([queued('w', 2, [], { after: ['other'] })], [e.run], 4), [e])).toEqual({ e: 'as-written@4' });
  });

  test('what an elastic run starts on counts, not what it asks for first', () => {
    const e = growing('e', 2, [4]);
    expect(grown(input([queued('w', 8, [2])], [e.run], 6), [e])).toEqual({ e: 'as-written@4' });
  });

  test('never more is given than there is', () => {
    const sizes = fc.uniqueArray(fc.integer({ min: 1, max: 8 }), { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(
        fc.array(sizes, { maxLength: 5 }),
        fc.array(sizes, { maxLength: 5 }),
        fc.nat(20),
        (runs, waits, spare) => {
          const down = (list: number[]) => [...list].sort((a, b) => b - a);
          const elastic = runs.map((list, i) => growing(`r${i}`, Math.min(...list), down(list).slice(0, -1)));
          const held = elastic.reduce((sum, { run }) => sum + run.instances, 0);
          const waiting = waits.map((list, i) => queued(`w${i}`, Math.max(...list), down(list).slice(1)));
          const given = input(
            waiting,
            elastic.map(({ run }) => run),
            held + spare,
          );
          const { admitted, sizes: chosen, waits: left } = admit(given);
          const growth = chooseGrowth(given, { admitted, sizes: chosen, waits: left }, elastic);
          const count = (capacityOptionId: string | undefined, otherwise: number) =>
            Number(capacityOptionId?.split('@')[1] ?? otherwise);
          const used =
            elastic.reduce((sum, { run }) => sum + count(growth.get(run.runId), run.instances), 0) +
            waiting.reduce((sum, w) => sum + (admitted.includes(w.runId) ? count(chosen[w.runId], w.instances) : 0), 0);
          expect(used).toBeLessThanOrEqual(held + spare);
        },
      ),
    );
  });
});
