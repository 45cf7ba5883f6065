import { expect, test } from 'vitest';
import { batches } from '../../../lib/sandbox/jobs/instances/log-writer';

test('log events are cut into calls by bytes and by number', () => {
  const event = (message: string) => ({ timestamp: 0, message });

  expect(batches([event('x'.repeat(600_000)), event('y'.repeat(600_000))]).map((batch) => batch.length)).toEqual([
    1, 1,
  ]);
  expect(batches(Array.from({ length: 10_001 }, () => event('z'))).map((batch) => batch.length)).toEqual([10_000, 1]);
});
