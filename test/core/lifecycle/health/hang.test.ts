import { describe, expect, test } from 'vitest';
import { judgeHang, nextProgress } from '../../../../lib/core/lifecycle/health/hang';
import type { Heartbeat } from '../../../../lib/core/lifecycle/observed';
import type { Progress } from '../../../../lib/core/lifecycle/record';
import { attempt, HOUR, job, MINUTE, policy, T0 } from '../support/records';

const progress = (changes: Partial<Progress> = {}): Progress => ({
  step: 100,
  phase: 'train',
  heartbeatAt: T0,
  movedAt: T0,
  ...changes,
});
const judge = (changes: Parameters<typeof attempt>[0], now: number, own = policy()) =>
  judgeHang({ attempt: attempt(changes), job: job(), policy: own }, { isRead: true }, now).kind;

describe('silence of the heartbeat', () => {
  test('needs a second observation some minutes later before it is a hang', () => {
    const late = T0 + 25 * MINUTE;
    expect(judge({ progress: progress() }, late)).toBe('suspected');
    expect(judge({ progress: progress(), suspectedHangAt: late }, late + MINUTE)).toBe('suspected');
    expect(judge({ progress: progress(), suspectedHangAt: late }, late + 5 * MINUTE)).toBe('hung');
  });

  test('within the budget is no silence', () => {
    expect(judge({ progress: progress() }, T0 + 19 * MINUTE)).toBe('moving');
  });

  test('one clock that jumps ten minutes ahead stops nothing', () => {
    expect(judge({ progress: progress() }, T0 + 2 * MINUTE + 10 * MINUTE)).toBe('moving');
  });
});

describe('beats without progress', () => {
  const withHeartbeat = (now: number, changes: Partial<Progress> = {}) =>
    progress({ heartbeatAt: now - MINUTE, ...changes });

  test('are a hang after the silence budget and the time the container needs to see it itself', () => {
    const now = T0 + 29 * MINUTE;
    expect(judge({ progress: withHeartbeat(now) }, now)).toBe('moving');
    const later = T0 + 31 * MINUTE;
    expect(judge({ progress: withHeartbeat(later), suspectedHangAt: T0 }, later)).toBe('hung');
  });

  test.each(['compile', 'load', 'eval', 'save'])('in declared phase %s are none for more than an hour', (phase) => {
    const now = T0 + 65 * MINUTE;
    expect(judge({ progress: withHeartbeat(now, { phase }), suspectedHangAt: T0 }, now)).toBe('moving');
  });

  test('before the first step have the start-up budget', () => {
    const now = T0 + 38 * MINUTE;
    expect(judge({ progress: withHeartbeat(now, { step: null, phase: '' }), suspectedHangAt: T0 }, now)).toBe('moving');
  });

  test('alert only when steps cannot be seen', () => {
    const now = T0 + HOUR;
    const verdict = judgeHang(
      {
        attempt: attempt({ progress: withHeartbeat(now), suspectedHangAt: T0 }),
        job: job(),
        policy: policy({ seesSteps: false }),
      },
      { isRead: true },
      now,
    );
    expect(verdict).toMatchObject({ kind: 'hung', maySee: false });
  });
});

test('a job that never sent a heartbeat is told of, not stopped', () => {
  const silent = { attempt: attempt({ suspectedHangAt: T0 }), job: job(), policy: policy() };
  const verdict = judgeHang(silent, { isRead: false }, T0 + 2 * HOUR);
  expect(verdict).toMatchObject({ kind: 'hung', maySee: false });
});

test.each(['Starting', 'Pending', 'Downloading', 'Interrupted', 'Uploading'])(
  '%s is never a hang',
  (secondaryStatus) => {
    const silent = attempt({ progress: progress(), suspectedHangAt: T0 });
    const watched = { attempt: silent, job: job({ secondaryStatus }), policy: policy() };
    expect(judgeHang(watched, { isRead: true }, T0 + 24 * HOUR).kind).toBe('moving');
  },
);

describe('progress', () => {
  const heartbeat = (changes: Partial<Heartbeat> = {}): Heartbeat => ({
    attempt: 1,
    step: 100,
    phase: 'train',
    writtenAt: T0,
    ...changes,
  });

  test('of an earlier attempt is not taken for this one', () => {
    expect(nextProgress(attempt({ number: 2 }), heartbeat(), T0)).toBeUndefined();
  });

  test('keeps the time of the last movement while only the heartbeat is new', () => {
    const first = nextProgress(attempt(), heartbeat(), T0);
    const second = nextProgress(attempt({ progress: first }), heartbeat({ writtenAt: T0 + MINUTE }), T0 + MINUTE);
    expect(second).toEqual({ step: 100, phase: 'train', heartbeatAt: T0 + MINUTE, movedAt: T0 });
  });
});

test('what a job writes beside its training is no progress while its heartbeats are read', () => {
  const now = T0 + HOUR;
  const beats = {
    attempt: attempt({ progress: progress({ heartbeatAt: now - MINUTE }), suspectedHangAt: T0 }),
    job: job(),
    policy: policy(),
  };
  expect(judgeHang(beats, { isRead: true, newestWriteAt: now - MINUTE }, now).kind).toBe('hung');
  const silent = { ...beats, attempt: attempt({ progress: progress(), suspectedHangAt: T0 }) };
  expect(judgeHang(silent, { isRead: true, newestWriteAt: now - MINUTE }, now).kind).toBe('moving');
});
