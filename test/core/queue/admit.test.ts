import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { admit, PATIENCE_MS, type QueueInput } from '../../../lib/core/queue/admit';
import { ENVIRONMENT_POOL, type QueuedRun, queueOrder, type RunningRun } from '../../../lib/core/queue/order';

const NOW = Date.UTC(2026, 10, 21);
const P5 = 'L-P5';
const DAY = 24 * 3_600_000;
const queued = (runId: string, instances: number, changes: Partial<QueuedRun> = {}): QueuedRun => ({
  runId,
  team: 'nlp',
  instances,
  needs: { [P5]: instances },
  priority: 0,
  queuedAt: NOW,
  after: [],
  ...changes,
});
const holding = (runId: string, instances: number, team = 'nlp'): RunningRun => ({
  runId,
  team,
  instances,
  needs: { [P5]: instances },
});
const input = (changes: Partial<QueueInput>): QueueInput => ({
  waiting: [],
  running: [],
  pools: { [P5]: { limit: 10, usedByOthers: 0, name: 'ml.p5.48xlarge for training job usage' } },
  shares: {},
  now: NOW,
  ...changes,
});

describe('order', () => {
  test('is priority, then age, within a team', () => {
    const waiting = [queued('young', 1), queued('old', 1, { queuedAt: NOW - 1 }), queued('urgent', 1, { priority: 5 })];
    expect(queueOrder(waiting, [], { shares: {} }, NOW).map((r) => r.runId)).toEqual(['urgent', 'old', 'young']);
  });

  test('gives the turn to the team that uses least for its share', () => {
    const waiting = [queued('n1', 2), queued('n2', 2), queued('s1', 2, { team: 'speech' })];
    expect(queueOrder(waiting, [holding('x', 2)], { shares: {} }, NOW).map((r) => r.runId)).toEqual(['s1', 'n1', 'n2']);
    expect(queueOrder(waiting, [holding('x', 2)], { shares: { nlp: 100 } }, NOW).map((r) => r.runId)[0]).toBe('s1');
    expect(
      queueOrder(waiting, [holding('x', 2), holding('y', 1, 'speech')], { shares: { nlp: 4 } }, NOW)[0]?.runId,
    ).toBe('n1');
  });

  test('counts each day of waiting as a step of priority within the team', () => {
    const urgent = queued('urgent', 1, { priority: 3 });
    const waited = (days: number) => queued('patient', 1, { queuedAt: NOW - days * DAY });
    expect(queueOrder([urgent, waited(2)], [], { shares: {} }, NOW)[0]?.runId).toBe('urgent');
    expect(queueOrder([urgent, waited(3)], [], { shares: {} }, NOW)[0]?.runId).toBe('patient');
  });

  test('keeps to the shares although every run has waited longer than a day', () => {
    const flood = Array.from({ length: 100 }, (_, i) =>
      queued(`a${String(i).padStart(3, '0')}`, 1, { team: 'a', queuedAt: NOW - DAY - 3_600_000 }),
    );
    const one = queued('b', 1, { team: 'b', queuedAt: NOW - DAY - 1_800_000 });
    const order = queueOrder([...flood, one], [], { shares: { a: 1, b: 99 } }, NOW);
    expect(order.findIndex((r) => r.runId === 'b')).toBeLessThanOrEqual(1);
  });
});

describe('admission', () => {
  test('starts what fits and says why the rest waits', () => {
    const result = admit(input({ waiting: [queued('a', 6), queued('b', 6, { queuedAt: NOW + 1 })] }));
    expect(result).toEqual({
      admitted: ['a'],
      sizes: {},
      waits: [{ runId: 'b', why: 'ml.p5.48xlarge for training job usage: needs 6, 4 of 10 are free' }],
    });
  });

  test('counts what others in the account use', () => {
    const pools = { [P5]: { limit: 10, usedByOthers: 5, name: 'p5' } };
    expect(admit(input({ pools, waiting: [queued('a', 6)] })).admitted).toEqual([]);
  });

  test('lets a small run pass a large one that has not waited long, and no longer afterwards', () => {
    const large = (waited: number) => queued('large', 8, { queuedAt: NOW - waited });
    const running = [holding('x', 4)];
    expect(admit(input({ running, waiting: [large(1000), queued('small', 2)] })).admitted).toEqual(['small']);
    const later = admit(input({ running, waiting: [large(PATIENCE_MS), queued('small', 2)] }));
    expect(later.admitted).toEqual([]);
    expect(later.waits[1]?.why).toBe('ml.p5.48xlarge for training job usage is kept for large, which waits longer');
  });

  describe('keeps room for a run that waited', () => {
    const old = { queuedAt: NOW - PATIENCE_MS };
    const pools = {
      [P5]: { limit: 64, usedByOthers: 0, name: 'p5' },
      m5: { limit: 20, usedByOthers: 0, name: 'm5' },
      [ENVIRONMENT_POOL]: { limit: null, usedByOthers: 0, name: 'guardrails.maxConcurrentInstances' },
    };
    const needs = (p5: number, m5 = 0) => ({
      ...(p5 > 0 && { [P5]: p5 }),
      ...(m5 > 0 && { m5 }),
      [ENVIRONMENT_POOL]: p5 + m5,
    });

    test('in the pools that lack room, and in no other', () => {
      const big = queued('big', 64, { ...old, needs: needs(64, 1) });
      const small = queued('small', 1, { needs: needs(0, 1) });
      expect(admit(input({ pools, running: [holding('x', 32)], waiting: [big, small] })).admitted).toEqual(['small']);
    });

    test('not during its back-off', () => {
      const big = queued('big', 4, { ...old, notBefore: NOW + 3_000_000 });
      expect(admit(input({ pools, waiting: [big, queued('small', 1)] })).admitted).toEqual(['small']);
    });

    test('not against what jobs of others hold', () => {
      const taken = { ...pools, [P5]: { limit: 64, usedByOthers: 32, name: 'p5' } };
      const big = queued('big', 64, { queuedAt: NOW - 30 * DAY });
      expect(admit(input({ pools: taken, waiting: [big, queued('small', 1)] })).admitted).toEqual(['small']);
    });

    test('against nobody who waits longer', () => {
      const big = queued('big', 64, { ...old, priority: 100 });
      const older = queued('older', 1, { queuedAt: NOW - 2 * PATIENCE_MS });
      const running = [holding('x', 32)];
      expect(admit(input({ pools, running, waiting: [big, older] })).admitted).toEqual(['older']);
    });
  });

  test('a run that asks for more than the limit keeps nobody waiting', () => {
    const waiting = [queued('huge', 11, { queuedAt: NOW - DAY }), queued('small', 2)];
    expect(admit(input({ waiting })).admitted).toEqual(['small']);
  });

  test('after: waits for the named runs and keeps nobody waiting meanwhile', () => {
    const waiting = [queued('b', 8, { after: ['a'], queuedAt: NOW - DAY }), queued('small', 2)];
    expect(admit(input({ waiting })).admitted).toEqual(['small']);
    const isFree = waiting.map((run) => ({ ...run, after: [] }));
    expect(admit(input({ waiting: isFree })).admitted).toEqual(['b', 'small']);
  });

  test('a back-off holds a run back', () => {
    const { admitted, waits } = admit(input({ waiting: [queued('a', 1, { notBefore: NOW + 1 })] }));
    expect(admitted).toEqual([]);
    expect(waits).toEqual([{ runId: 'a', why: 'waits before it asks for capacity again' }]);
  });

  test('a run that was started for a time says until when it waits', () => {
    const later = NOW + 3_600_000;
    const { admitted, waits } = admit(input({ waiting: [queued('a', 1, { notBefore: later, queuedAt: later })] }));
    expect(admitted).toEqual([]);
    expect(waits.map(({ why }) => why)).toEqual([`waiting until ${new Date(later).toISOString()}`]);
  });

  test('an unknown limit holds nobody back', () => {
    expect(admit(input({ pools: {}, waiting: [queued('a', 500)] })).admitted).toEqual(['a']);
  });
});

const anyRun = fc.record({
  team: fc.constantFrom('nlp', 'speech', 'vision'),
  instances: fc.integer({ min: 1, max: 10 }),
  priority: fc.integer({ min: -3, max: 3 }),
  age: fc.integer({ min: 0, max: 2 * DAY }),
});

test('never admits more than the limit, and every waiting run is admitted or has a reason', () => {
  fc.assert(
    fc.property(fc.array(anyRun, { maxLength: 25 }), fc.integer({ min: 0, max: 10 }), (runs, held) => {
      const waiting = runs.map((r, i) => queued(`r${i}`, r.instances, { ...r, queuedAt: NOW - r.age }));
      const result = admit(input({ waiting, running: [holding('x', held)] }));
      const taken = waiting.filter((r) => result.admitted.includes(r.runId)).reduce((sum, r) => sum + r.instances, 0);
      expect(taken + held).toBeLessThanOrEqual(10);
      expect(new Set([...result.admitted, ...result.waits.map((w) => w.runId)])).toEqual(
        new Set(waiting.map((r) => r.runId)),
      );
    }),
  );
});

test('nobody starves: under a stream of urgent small runs a large one starts within a day and the longest run time', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 8, maxLength: 8 }), (sizes) => {
      const step = 1_800_000;
      const runtime = 3 * 3_600_000;
      let now = NOW;
      let waiting: QueuedRun[] = [queued('large', 10, { priority: -10, queuedAt: NOW })];
      let running: (RunningRun & { until: number })[] = [];
      for (let turn = 0; turn < (DAY + 2 * runtime) / step; turn++) {
        const size = sizes[turn % sizes.length] ?? 1;
        waiting.push(queued(`s${turn}`, size, { team: 'speech', priority: 100, queuedAt: now }));
        running = running.filter((r) => r.until > now);
        const { admitted } = admit(input({ waiting, running, now }));
        if (admitted.includes('large')) return true;
        running.push(...waiting.filter((r) => admitted.includes(r.runId)).map((r) => ({ ...r, until: now + runtime })));
        waiting = waiting.filter((r) => !admitted.includes(r.runId));
        now += step;
      }
      return false;
    }),
    { numRuns: 50 },
  );
});
