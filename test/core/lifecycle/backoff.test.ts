import fc from 'fast-check';
import { expect, test } from 'vitest';
import { backoffSeconds } from '../../../lib/core/lifecycle/budgets';

const plan = { firstSeconds: 300, mostSeconds: 3600 };

test('doubles from the first delay to the longest, give or take a quarter', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 40 }), fc.string(), (tries, seed) => {
      const plain = Math.min(3600, 300 * 2 ** (tries - 1));
      const seconds = backoffSeconds(plan, tries, seed);
      return seconds >= Math.floor(plain * 0.75) && seconds <= Math.ceil(plain * 1.25);
    }),
  );
});

test('is the same for the same run and try, and differs between runs', () => {
  expect(backoffSeconds(plan, 3, 'a')).toBe(backoffSeconds(plan, 3, 'a'));
  const delays = new Set(Array.from({ length: 50 }, (_, i) => backoffSeconds(plan, 1, `run-${i}`)));
  expect(delays.size).toBeGreaterThan(30);
});

test('waits for nothing before the first failure', () => {
  expect(backoffSeconds(plan, 0, 'a')).toBe(0);
});
