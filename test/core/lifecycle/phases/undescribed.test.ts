import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { attempt, HOUR, MINUTE, policy, run, running, seeing, T0 } from '../support/records';

const undescribed = (more = {}) => seeing({ job: { kind: 'unreadable', error: 'AccessDenied' }, ...more });
/** One that trained for an hour at 100 USD an hour, lost its instances, and could not be described any more ten minutes later. */
const interrupted = (more = {}) =>
  running({
    policy: policy({ maxCostUsd: 300 }),
    attempt: attempt({
      secondaryStatus: 'Interrupted',
      undescribedSince: T0 + 70 * MINUTE,
      pauses: { ms: 0, times: 1, since: T0 + HOUR },
      ...more,
    }),
  });

describe('a job that was interrupted when it could last be described', () => {
  test('counts as training again for the cap, as long as nothing shows when it got its instances back', () => {
    const at = (hours: number) => run(interrupted(), undescribed(), T0 + hours * HOUR).record.attempt?.stop?.why;
    expect(at(3)).toBeUndefined();
    expect(at(3.2)).toBe('spend');
  });

  test('trained again from the time that its steps show', () => {
    const start = (number: number, firstStepAt: number) => ({
      ...{ number, firstStep: 1, firstStepAt: T0 + firstStepAt, step: 9 },
      ...{ stepAt: T0 + firstStepAt + MINUTE, endedAt: null },
    });
    const heartbeat = {
      ...{ attempt: 1, step: 9, phase: '', writtenAt: T0 + 3 * HOUR },
      ...{ starts: [start(0, 10 * MINUTE), start(1, 3 * HOUR - MINUTE)], earlierStarts: 1 },
    };
    const seen = run(interrupted(), undescribed({ heartbeat }), T0 + 3 * HOUR).record;
    expect(seen.attempt?.pauses).toEqual({ ms: 2 * HOUR - 11 * MINUTE, times: 1 });
    expect(run(seen, undescribed({ heartbeat }), T0 + 4 * HOUR).record.attempt?.stop).toBeUndefined();
    expect(run(seen, undescribed({ heartbeat }), T0 + 5 * HOUR).record.attempt?.stop?.why).toBe('spend');
  });

  test('never costs more than its cap, whatever was seen of it', () => {
    const minutes = (max: number) => fc.integer({ min: 0, max });
    fc.assert(
      fc.property(minutes(300), minutes(300), minutes(600), (trained, unseenAfter, later) => {
        const since = T0 + trained * MINUTE;
        const undescribedSince = since + unseenAfter * MINUTE;
        const now = undescribedSince + later * MINUTE;
        // It may have got its instances back as soon as it could not be described.
        const billedUsd = (100 * (trained + later)) / 60;
        const { record } = run(
          interrupted({ undescribedSince, pauses: { ms: 0, times: 1, since } }),
          undescribed(),
          now,
        );
        expect(record.attempt?.stop !== undefined || billedUsd < 300).toBe(true);
      }),
    );
  });
});

test('a run whose job cannot be described stops all the same, and says why', () => {
  const at = (hours: number) => run(interrupted(), undescribed(), T0 + hours * HOUR).record;
  const capped = at(3.2);
  expect(capped).toMatchObject({ state: 'stopping', reason: capped.attempt?.stop?.text });
  expect(at(3)).toMatchObject({ state: 'running', reason: interrupted().reason });
});
