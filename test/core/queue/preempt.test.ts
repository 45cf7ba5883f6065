import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { admit, type QueueInput } from '../../../lib/core/queue/admit';
import type { QueuedRun } from '../../../lib/core/queue/order';
import { choosePreemptions, type PreemptibleRun } from '../../../lib/core/queue/preempt';

const NOW = Date.UTC(2026, 10, 21);
const HOUR = 3_600_000;
const queued = (runId: string, instances: number, changes: Partial<QueuedRun> = {}): QueuedRun => ({
  runId,
  team: 'nlp',
  instances,
  needs: { p5: instances },
  priority: 0,
  queuedAt: NOW - HOUR,
  after: [],
  ...changes,
});
const preemptible = (run: QueuedRun, changes: Partial<PreemptibleRun> = {}): PreemptibleRun => ({
  run,
  trainingSince: NOW - 2 * HOUR,
  isRequested: false,
  ...changes,
});
const input = (waiting: QueuedRun[], running: readonly PreemptibleRun[], limit = 8): QueueInput => ({
  waiting,
  running: running.map(({ run: { runId, team, instances, needs } }) => ({ runId, team, instances, needs })),
  pools: { p5: { limit, usedByOthers: 0, name: 'p5' } },
  shares: {},
  now: NOW,
});
const chosen = (waiting: QueuedRun[], running: readonly PreemptibleRun[], limit?: number) =>
  choosePreemptions(input(waiting, running, limit), running);

const urgent = queued('urgent', 8, { priority: 1 });
const background = queued('background', 8);

describe('a run is asked', () => {
  test('for one of higher priority of its team', () => {
    expect(chosen([urgent], [preemptible(background)])).toEqual([{ runId: 'background', for: 'urgent' }]);
  });

  test('although it joined weeks ago: days of training are no days of waiting', () => {
    const old = queued('background', 8, { queuedAt: NOW - 800 * HOUR });
    expect(chosen([urgent], [preemptible(old)])).toHaveLength(1);
  });

  test('and no other one beside it that is not needed', () => {
    const small = [1, 2, 3].map((i) => preemptible(queued(`small-${i}`, 2), { trainingSince: NOW - (i + 1) * HOUR }));
    const large = preemptible(queued('large', 8), { trainingSince: NOW - 9 * HOUR });
    expect(chosen([urgent], [...small, large], 14)).toEqual([{ runId: 'large', for: 'urgent' }]);
  });
});

test('the shortest training is given up first, and between equals the first id', () => {
  const one = (runId: string, trainedHours: number, priority = 0) =>
    preemptible(queued(runId, 8, { priority }), { trainingSince: NOW - trainedHours * HOUR });
  const first = (...running: PreemptibleRun[]) =>
    chosen([queued('urgent', 8, { priority: 9 })], running, 8 * running.length).map(({ runId }) => runId);
  expect(first(one('long', 9), one('short', 2))).toEqual(['short']);
  expect(first(one('b', 2), one('a', 2), one('c', 2))).toEqual(['a']);
  expect(first(one('a', 2, 1), one('b', 9))).toEqual(['b']);
});

test('the times of protection end at their last minute', () => {
  const asked = (changes: Partial<PreemptibleRun>) => chosen([urgent], [preemptible(background, changes)]).length;
  expect(asked({ trainingSince: NOW - HOUR })).toBe(1);
  expect(asked({ trainingSince: NOW - HOUR + 1 })).toBe(0);
  expect(asked({ preemptedAt: NOW - 4 * HOUR })).toBe(1);
  expect(asked({ preemptedAt: NOW - 4 * HOUR + 1 })).toBe(0);
});

describe('nobody is asked', () => {
  test('for a run whose room could not be read', () => {
    const running = [preemptible(background)];
    const pools = { p5: { limit: 8, usedByOthers: 0, isUnread: true, name: 'p5' } };
    expect(choosePreemptions({ ...input([urgent], running), pools }, running)).toEqual([]);
  });

  test.each<[string, QueuedRun, PreemptibleRun]>([
    ['for a run of the same priority', queued('equal', 8), preemptible(background)],
    [
      'for one that has only waited for days',
      queued('old', 8, { queuedAt: NOW - 200 * HOUR }),
      preemptible(background),
    ],
    ['within 15 minutes', { ...urgent, queuedAt: NOW - HOUR / 5 }, preemptible(background)],
    ['for a run in its back-off', { ...urgent, notBefore: NOW + 1 }, preemptible(background)],
    ['for a run that waits for another one', { ...urgent, after: ['other'] }, preemptible(background)],
    ['above the limit', queued('huge', 9, { priority: 1 }), preemptible(background)],
    ['within the first hour of training', urgent, preemptible(background, { trainingSince: NOW - 0.9 * HOUR })],
    ['within four hours of the last time', urgent, preemptible(background, { preemptedAt: NOW - 3.9 * HOUR })],
    ['for a run of another team that has used as much', { ...urgent, team: 'speech' }, preemptible(background)],
  ])('%s', (_, waiting, running) => {
    expect(chosen([waiting], [running])).toEqual([]);
  });

  test('again while one that was asked has not left', () => {
    const asked = preemptible(background, { isRequested: true });
    expect(chosen([urgent], [asked, preemptible(queued('other', 8))], 16)).toEqual([]);
  });
});

test('once those that were asked have left, the queue starts the run, and none of them', () => {
  const run = fc.record({
    team: fc.constantFrom('nlp', 'speech', 'vision'),
    instances: fc.integer({ min: 1, max: 8 }),
    priority: fc.integer({ min: 0, max: 3 }),
    waitedHours: fc.integer({ min: 0, max: 60 }),
    trained: fc.integer({ min: 0, max: 40 }),
    isRequested: fc.boolean(),
  });
  const usage = fc.dictionary(
    fc.constantFrom('nlp', 'speech', 'vision'),
    fc.record({ p5: fc.integer({ min: 0, max: 99 }) }),
  );
  let preemptions = 0;
  fc.assert(
    fc.property(fc.array(run, { maxLength: 5 }), fc.array(run, { maxLength: 6 }), usage, (waits, runs, hours) => {
      const of = (r: (typeof waits)[number], id: string) =>
        queued(id, r.instances, { team: r.team, priority: r.priority, queuedAt: NOW - r.waitedHours * HOUR });
      const running = runs.map((r, i) =>
        preemptible(of(r, `r${i}`), { trainingSince: NOW - r.trained * HOUR, isRequested: r.isRequested && i === 0 }),
      );
      const held = runs.reduce((sum, r) => sum + r.instances, 0);
      const before = {
        ...input(
          waits.map((r, i) => of(r, `w${i}`)),
          running,
          Math.max(8, held),
        ),
        usage: { at: NOW, hours, held: {} },
      };
      const found = choosePreemptions(before, running);
      if (found.length === 0) return;
      preemptions += 1;
      const leaving = new Set([
        ...found.map((p) => p.runId),
        ...running.filter((r) => r.isRequested).map((r) => r.run.runId),
      ]);
      const after = {
        ...before,
        running: before.running.filter((r) => !leaving.has(r.runId)),
        waiting: [
          ...before.waiting,
          ...running.flatMap((r) => (leaving.has(r.run.runId) ? [{ ...r.run, waitingSince: NOW }] : [])),
        ],
      };
      const { admitted } = admit(after);
      expect(admitted).toContain(found[0]?.for);
      expect(found.filter((p) => admitted.includes(p.runId))).toEqual([]);
    }),
    { numRuns: 2000 },
  );
  expect(preemptions).toBeGreaterThan(20);
});
