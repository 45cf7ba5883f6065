import { expect, test } from 'vitest';
import { RATES, RateLimits } from '../../../lib/sandbox/wire/rate-limits';

test('calls above the published rate are refused until tokens come back', () => {
  const limits = new RateLimits(RATES);
  const at = (ms: number) => limits.take('1', 'r', 'CreateTrainingJob', ms);

  expect([at(0), at(10), at(900), at(1000), at(1100), limits.take('2', 'r', 'CreateTrainingJob', 0)]).toEqual([
    true,
    false,
    false,
    true,
    false,
    true,
  ]);
  expect(limits.take('1', 'r', 'DescribeTrainingJob', 0)).toBe(true);
});
