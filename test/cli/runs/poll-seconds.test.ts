import { afterEach, expect, test, vi } from 'vitest';
import { pollSeconds } from '../../../lib/cli/runs/wait';

afterEach(() => vi.unstubAllEnvs());

test.each([
  ['0', 0],
  ['1', 1],
  ['0.5', 0.5],
])('polls every %s seconds when the variable says so', (text, seconds) => {
  vi.stubEnv('SLIPWAY_POLL_SECONDS', text);
  expect(pollSeconds(10)).toBe(seconds);
});

test.each([undefined, '', ' ', 'abc', '-1', 'NaN', 'Infinity', '1e9'])(
  'polls as usual when the variable is %j',
  (text) => {
    vi.stubEnv('SLIPWAY_POLL_SECONDS', text);
    expect(pollSeconds(10)).toBe(10);
  },
);
