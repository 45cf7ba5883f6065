import { expect, test } from 'vitest';
import { Ended, RunControl } from '../../../lib/sandbox/jobs/run-control';

test('what ends a job as a whole wins over what ends an attempt, and shutdown over all', async () => {
  const control = new RunControl();
  control.end({ kind: 'spot' });
  control.end({ kind: 'stop' });
  control.clearPassing();

  await expect(control.sleep(null)).rejects.toBeInstanceOf(Ended);
  expect(control.ending?.kind).toBe('stop');
  control.end({ kind: 'max-runtime' });
  expect(control.ending?.kind).toBe('stop');
  control.end({ kind: 'shutdown' });
  expect(control.ending?.kind).toBe('shutdown');
});

test('after an attempt was ended the next one may run', async () => {
  const control = new RunControl();
  control.end({ kind: 'internal-error' });
  await expect(control.race(Promise.resolve(1))).rejects.toBeInstanceOf(Ended);
  control.clearPassing();

  expect(await control.race(Promise.resolve(1))).toBe(1);
});
