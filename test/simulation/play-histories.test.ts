import { expect, test } from 'vitest';
import type { SimulationResult } from '../../tools/simulation';
import { HistoryCount } from '../../tools/simulation/command/history-count';
import { historyParts, isLong, mergeParts } from '../../tools/simulation/command/play-histories';

const whole = { file: 'a.yaml', text: '', seed: 5, histories: 21 };

test('histories are split over the processors, each seed once', () => {
  const parts = historyParts(whole, 2) ?? [];
  expect(parts.map(({ seed, histories }) => [seed, histories])).toEqual([
    [5, 11],
    [16, 10],
  ]);
});

test.each([
  [2, 15],
  [1, 1000],
])('%i processors and %i histories need no second thread', (threads, histories) => {
  expect(historyParts({ ...whole, histories }, threads)).toBeUndefined();
});

test.each([
  [50, undefined, 100, true],
  [50, undefined, 99, false],
  [10, { runs: 40 }, 100, true],
  [0, undefined, 720, false],
])('a thread is started for %i runs and %j drawn ones of %i hours: %s', (count, random, hours, long) => {
  expect(
    isLong({ runs: Array.from({ length: count }), random, until: hours * 3600 } as Parameters<typeof isLong>[0]),
  ).toBe(long);
});

test('the result is that of the first history that fails, with the counts of all', () => {
  const part = (seed: number, failed: number) =>
    ({
      ok: failed === 0,
      seed,
      histories: { played: 10, failed, firstFailedSeed: failed ? seed : null },
    }) as SimulationResult;
  expect(mergeParts([part(1, 0), part(12, 2), part(25, 1)])).toMatchObject({
    ok: false,
    seed: 12,
    histories: { played: 30, failed: 3, firstFailedSeed: 12 },
  });
  expect(mergeParts([part(1, 0), part(12, 0)])).toMatchObject({ ok: true, seed: 12, histories: { failed: 0 } });
});

test('progress counts histories and estimates what is left; an interruption names the first failed seed', () => {
  let now = 0;
  const count = new HistoryCount(2000, () => now);
  expect(count.progress()).toBe('0 of 2,000 histories played, 0 failed');
  now = 60_000;
  for (let seed = 1; seed <= 200; seed++) count.add(seed, seed !== 90 && seed !== 31);
  expect(count.progress()).toBe('200 of 2,000 histories played, 2 failed, about 9 min left');
  expect(count.found()).toBe('200 of 2,000 histories played, 2 failed, the first with --seed 31');
  const [whole, failed] = [new HistoryCount(1), new HistoryCount(1)];
  whole.add(7, true);
  failed.add(7, false);
  expect(whole.progress()).toBe('1 of 1 histories played, 0 failed');
  expect(failed.progress()).toBe('1 of 1 histories played, 1 failed, the first with --seed 7; shrinking it');
});
