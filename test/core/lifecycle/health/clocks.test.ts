// Our clock and those of S3 and SageMaker may differ by any amount, and by another amount at each observation.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Observed } from '../../../../lib/core/lifecycle/observed';
import type { RunRecord } from '../../../../lib/core/lifecycle/record';
import { draws } from '../../../support/draws';
import { admitted, attempt, HOUR, job, MINUTE, run, running, seeing, T0 } from '../support/records';

const offsets = fc.array(fc.integer({ min: -24 * HOUR, max: 24 * HOUR }), { minLength: 3, maxLength: 12 });
const INTERVAL = 5 * MINUTE;

/**
 * Looks every five minutes at a job whose newest heartbeat is the one at `heartbeatAt`, with our clock off by as much as given for each
 * observation.
 */
function observe(before: RunRecord, skews: readonly number[], heartbeatAt: (now: number) => number): RunRecord {
  return skews.reduce((record, skew, i) => {
    const now = T0 + (i + 1) * INTERVAL;
    const at = heartbeatAt(now);
    const step = Math.round((at - T0) / 1000);
    const heartbeat: Observed['heartbeat'] = {
      attempt: 1,
      step,
      phase: '',
      writtenAt: at,
      starts: [{ number: 0, firstStep: 1, firstStepAt: T0, step, stepAt: at, endedAt: null }],
    };
    return run(record, seeing({ job: job(), heartbeat }, [step]), now + skew).record;
  }, before);
}

test('a job that goes on writing heartbeats is not stopped, whatever our clock says', () => {
  fc.assert(
    fc.property(offsets, (skews) => {
      expect(observe(running(), skews, (now) => now - MINUTE).attempt?.stop).toBeUndefined();
    }),
    { numRuns: draws(200) },
  );
});

test('a job that has just begun is not stopped when our clock was off since before its create call', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 24 * HOUR }), (skew) => {
      const fresh = attempt({ lastCreateAt: T0 + skew, acceptedAt: T0 + skew, intentAt: T0 + skew });
      const quiet = seeing({ job: job() });
      let record = admitted({ state: 'running', attempt: fresh });
      for (const minute of [5, 10]) record = run(record, quiet, T0 + skew + minute * MINUTE).record;
      expect([record.attempt?.stop, record.attempt?.suspectedHangAt]).toEqual([undefined, undefined]);
    }),
    { numRuns: draws(50) },
  );
});

test('a job whose heartbeats stop is stopped, whatever our clock was off by all the time', () => {
  fc.assert(
    fc.property(fc.integer({ min: -24 * HOUR, max: 24 * HOUR }), (skew) => {
      const observations = Math.ceil((Math.max(0, -skew) + HOUR) / INTERVAL);
      const stopped = observe(
        running(),
        Array<number>(observations + 4).fill(skew),
        (now) => Math.min(now, T0 + 2 * INTERVAL) - MINUTE,
      );
      expect(stopped.attempt?.stop?.why).toBe('hang');
    }),
    { numRuns: draws(50) },
  );
});
