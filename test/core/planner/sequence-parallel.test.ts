import { expect, test } from 'vitest';
import { needsSequenceParallel } from '../../../lib/core/planner/layout';
import { layout } from '../../support/layouts';

test.each([
  ['megatron', 2, 2, true],
  ['megatron', 1, 2, false],
  ['megatron', 2, 1, false],
  ['fsdp', 2, 2, false],
] as const)('%s with tensor %i and expert %i needs sequence parallelism: %s', (stack, tensor, expert, needs) => {
  expect(needsSequenceParallel(layout({ stack, tensor, expert }))).toBe(needs);
});
