import { expect, test } from 'vitest';
import { loopbackAddresses } from '../../../lib/sandbox/jobs/attempt';

test('addresses differ between instances and jobs on Linux; elsewhere there is one', () => {
  const seen = [1, 2, 200, 201].flatMap((job) => [...loopbackAddresses(job, ['algo-1', 'algo-2'], 'linux').values()]);

  expect(new Set(seen).size).toBe(8);
  expect(seen.every((address) => /^127\.\d+\.\d+\.\d+$/.test(address) && address !== '127.0.0.1')).toBe(true);
  expect([...loopbackAddresses(1, ['algo-1', 'algo-2'], 'darwin').values()]).toEqual(['127.0.0.1', '127.0.0.1']);
});
