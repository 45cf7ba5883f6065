import { describe, expect, test } from 'vitest';
import { runSpendUsd } from '../../../../lib/core/lifecycle/accounting/spend';
import { driverBeganAt } from '../../../../lib/core/lifecycle/health/gone';
import type { Observed } from '../../../../lib/core/lifecycle/observed';
import type { Attempt } from '../../../../lib/core/lifecycle/record';
import { attempt, HOUR, MINUTE, run, running, seeing, T0 } from '../support/records';

const absent = (steps: number[] = [], more: Partial<Observed> = {}) =>
  seeing({ job: { kind: 'absent' }, ...more }, steps);
const heartbeatAt = (at: number) => ({ step: 5, phase: '', heartbeatAt: T0 + at, movedAt: T0 + at });

describe('a job that is not found', () => {
  const missed = running({ attempt: attempt({ absentSince: T0, progress: heartbeatAt(2 * MINUTE) }) });
  const phaseAfter = (more: Partial<Observed>, now = T0 + 5 * MINUTE) =>
    run(missed, absent([10], more), now).record.attempt?.phase;
  const unread = { heartbeatError: 'AccessDenied' };

  test('lives while its driver writes what cannot be read', () => {
    expect(phaseAfter({ ...unread, unreadHeartbeatAt: T0 + 4 * MINUTE })).toBe('created');
    expect(phaseAfter({ ...unread, unreadHeartbeatAt: T0 + 4 * MINUTE }, T0 + 8 * MINUTE)).toBe('ended');
  });

  test('lives while its heartbeat cannot be read and the last one was newer than the first miss', () => {
    expect(phaseAfter(unread, T0 + HOUR)).toBe('created');
    const older = { ...missed, attempt: attempt({ absentSince: T0 + MINUTE, progress: heartbeatAt(MINUTE) }) };
    expect(run(older, absent([10], unread), T0 + HOUR).record.attempt?.phase).toBe('ended');
  });

  test('ended no earlier than the last heartbeat that was read', () => {
    expect(run(missed, absent([10]), T0 + HOUR).record.attempt).toMatchObject({
      phase: 'ended',
      endedAt: T0 + 3 * MINUTE,
    });
  });

  test('ended no later than a stop to which the service answered that it was over', () => {
    const stop = {
      why: 'user',
      at: T0 + MINUTE,
      sentAt: T0 + MINUTE,
      isTooLate: true,
      text: 'stopped as asked',
    } as const;
    const stopped = running({
      attempt: attempt({ absentSince: T0 + HOUR, undescribedSince: T0, stop }),
      desired: 'stop',
    });
    expect(run(stopped, absent([10]), T0 + 2 * HOUR).record.attempt?.endedAt).toBe(T0 + MINUTE);
  });

  test('costs no more than until its last heartbeat, also before a second observation confirms that it is gone', () => {
    const heartbeat = { attempt: 1, step: 5, phase: '', writtenAt: T0 + HOUR };
    const first = run(running(), absent([10], { heartbeat }), T0 + 3 * HOUR).record;
    expect(runSpendUsd(first, T0 + 3 * HOUR)).toBeCloseTo((100 * 61) / 60);
    const ended = run(first, absent([10], { heartbeat }), T0 + 3 * HOUR + 5 * MINUTE).record;
    expect(ended.attempt?.costUsd).toBe(runSpendUsd(first, T0 + 3 * HOUR));
  });

  test('had made the steps that it committed, although its heartbeats could not be read since', () => {
    const ended = run(running({ attempt: attempt({ absentSince: T0, lastStep: 4 }) }), absent([10]), T0 + HOUR).record;
    expect(ended.attempt?.lastStep).toBe(10);
  });

  test('had no instances while its driver was started again, although no one could describe it', () => {
    const start = (number: number, from: number, firstStepAt: number, stepAt: number) => ({
      number,
      firstStep: from,
      firstStepAt: T0 + firstStepAt,
      step: from + 5,
      stepAt: T0 + stepAt,
      endedAt: null,
    });
    const starts = [start(0, 1, 10 * MINUTE, HOUR), start(1, 4, 2 * HOUR, 3 * HOUR)];
    const own = {
      absentSince: T0 + 4 * HOUR,
      undescribedSince: T0 + 30 * MINUTE,
      progress: { ...heartbeatAt(3 * HOUR), starts, earlierStarts: 1 },
    };
    const ended = (changes: Partial<Attempt>) =>
      run(running({ attempt: attempt({ ...own, ...changes }) }), absent(), T0 + 5 * HOUR).record.attempt?.pauses;
    expect(ended({})).toEqual({ ms: 50 * MINUTE, times: 1 });
    // Describe has reported that pause itself.
    expect(ended({ undescribedSince: T0 + 2.5 * HOUR, pauses: { ms: 48 * MINUTE, times: 1 } })).toEqual({
      ms: 48 * MINUTE,
      times: 1,
    });
    const inPlace = { ...own.progress, earlierStarts: 0 };
    expect(ended({ progress: inPlace })).toBeUndefined();
  });
});

describe('what a job cost that was never described and is gone', () => {
  const never = { trainingStartedAt: undefined, absentSince: T0 + 2 * HOUR, undescribedSince: T0 + MINUTE };
  const costUsd = (more: Partial<Observed>) =>
    run(running({ attempt: attempt(never) }), absent([], more), T0 + 3 * HOUR).record.attempt?.costUsd;

  test('counts from its creation while its heartbeats cannot be read, as it did for the cap', () => {
    expect(costUsd({ heartbeatError: 'AccessDenied' })).toBe(200);
  });

  test('is nothing where its heartbeats could be read and there were none', () => {
    expect(costUsd({})).toBe(0);
  });
});

describe('when a job that was never described began to train', () => {
  const created = attempt({ acceptedAt: T0 });
  const start = { number: 0, firstStep: 1, firstStepAt: T0 + HOUR, step: 5, stepAt: T0 + HOUR, endedAt: null };

  test.each([
    ['its driver began', { beganAt: T0 + MINUTE, starts: [start] }, T0 + MINUTE],
    ['the first step of an older driver', { starts: [start] }, T0 + HOUR],
    ['its creation, if the code of the run writes an earlier time', { beganAt: 1 }, T0],
    ['not known without either', {}, undefined],
  ])('%s', (_, more, began) => {
    expect(driverBeganAt(created, { ...heartbeatAt(2 * HOUR), ...more })).toBe(began);
  });
});
