// To the second where a quiet job begins to count as silent: the budgets of docs/reference/runtime.md.
import { describe, expect, test } from 'vitest';
import { judgeHang, nextProgress, type SignsOfLife } from '../../../../lib/core/lifecycle/health/hang';
import type { Attempt, Progress, RunPolicy } from '../../../../lib/core/lifecycle/record';
import { attempt, HOUR, job, MINUTE, policy, T0 } from '../support/records';

const READ: SignsOfLife = { isRead: true };
const judge = (progress: Partial<Progress> | undefined, seconds: number, own: Partial<RunPolicy> = {}, signs = READ) =>
  judgeHang(
    {
      attempt: attempt({
        progress: progress && { step: 100, phase: '', heartbeatAt: T0, movedAt: T0, ...progress },
        suspectedHangAt: T0 - HOUR,
      }),
      job: job(),
      policy: policy(own),
    },
    signs,
    T0 + seconds * 1000,
  );
const withHeartbeat = (seconds: number, more: Partial<Progress> = {}) => ({
  heartbeatAt: T0 + seconds * 1000,
  ...more,
});

test.each<[string, Partial<Progress> | undefined, Partial<RunPolicy>, number]>([
  ['a heartbeat', {}, {}, 1200],
  ['a heartbeat, with a shorter budget and the time that the container needs', {}, { silenceMinutes: 5 }, 300 + 600],
  ['a heartbeat, with a longer budget', {}, { silenceMinutes: 40 }, 2400],
  ['the first heartbeat', undefined, {}, 30 * 60 + 600 + 1200],
  ['the first heartbeat, with a longer start-up', undefined, { startupMinutes: 60 }, 60 * 60 + 600 + 1200],
])('%s may be missing for as long as its budget', (_, progress, own, seconds) => {
  expect(judge(progress, seconds, own).kind).toBe('moving');
  expect(judge(progress, seconds + 1, own).kind).toBe('hung');
});

test.each<[string, Partial<Progress>, Partial<RunPolicy>, number]>([
  ['training', {}, {}, 1200 + 600],
  ['an unknown phase', { phase: 'dance' }, {}, 1200 + 600],
  ['start', { phase: 'start' }, {}, 3600 + 600],
  ['rendezvous', { phase: 'rendezvous' }, {}, 2700 + 600],
  ['prepare', { phase: 'prepare' }, {}, 5400 + 600],
  ['compile', { phase: 'compile' }, {}, 10_800 + 600],
  ['first-step', { phase: 'first-step' }, {}, 2700 + 600],
  ['load', { phase: 'load' }, {}, 5400 + 600],
  ['eval', { phase: 'eval' }, {}, 10_800 + 600],
  ['save', { phase: 'save' }, {}, 5400 + 600],
  ['the start before its first step', { phase: 'start', step: null }, {}, 3600 + 600],
  ['a long start before its first step', { phase: 'start', step: null }, { startupMinutes: 90 }, 5400 + 600],
  ['no phase before its first step', { step: null }, {}, 1800 + 600],
])('a job that writes heartbeats may stand still in %s for as long as its budget', (_, more, own, seconds) => {
  expect(judge(withHeartbeat(seconds, more), seconds, own).kind).toBe('moving');
  expect(judge(withHeartbeat(seconds + 1, more), seconds + 1, own)).toMatchObject({ kind: 'hung', maySee: true });
});

test('what is said names how long, the phase and the step', () => {
  expect(judge(withHeartbeat(2400), 2400)).toMatchObject({ text: 'no progress for 40 min in phase train at step 100' });
  expect(judge(withHeartbeat(7200, { step: null, phase: 'load' }), 7200)).toMatchObject({
    text: 'no progress for 120 min in phase load at step unknown',
  });
  expect(judge({}, 1500)).toMatchObject({ text: 'the heartbeat stopped 25 min ago', maySee: true });
  expect(judge(undefined, 7200)).toMatchObject({
    text: 'no heartbeat in the 120 min since training began',
    maySee: false,
  });
});

describe('other signs of life', () => {
  test('an object that the run wrote counts like a heartbeat', () => {
    const wrote = { isRead: true, newestWriteAt: T0 + HOUR };
    expect(judge({}, 3600 + 1200, {}, wrote).kind).toBe('moving');
    expect(judge({}, 3600 + 1201, {}, wrote).kind).toBe('hung');
    expect(judge(undefined, 3600 + 3600, {}, wrote).kind).toBe('moving');
    expect(judge(undefined, 3600 + 3601, {}, wrote).kind).toBe('hung');
  });

  test('an object that was written while it beats does not hide that its steps stand still', () => {
    const wrote = { isRead: true, newestWriteAt: T0 + 1700 * 1000 };
    expect(judge(withHeartbeat(1800), 1800, {}, wrote).kind).toBe('moving');
    expect(judge(withHeartbeat(1801), 1801, {}, wrote).kind).toBe('hung');
  });

  test('a heartbeat that cannot be read now says nothing', () => {
    expect(judge({}, 1500, {}, { isRead: false }).kind).toBe('unknown');
    expect(judge({}, 1500, {}, { isRead: true, isUnreadable: true }).kind).toBe('unknown');
    expect(judge(undefined, 7200, {}, { isRead: false }).kind).toBe('hung');
    expect(judge(undefined, 7200, {}, { isRead: false, isUnreadable: true }).kind).toBe('unknown');
  });

  test('no heartbeat is expected of a job whose driver sends none', () => {
    expect(judge(undefined, 24 * 3600, { writesHeartbeats: false }).kind).toBe('moving');
    expect(judge(undefined, 24 * 3600, { seesSteps: false, writesHeartbeats: true }).kind).toBe('hung');
  });
});

test('a second observation must come at least four minutes after the first', () => {
  const observe = (since: number | undefined) =>
    judgeHang(
      {
        attempt: attempt({ progress: { step: 1, phase: '', heartbeatAt: T0, movedAt: T0 }, suspectedHangAt: since }),
        job: job(),
        policy: policy(),
      },
      READ,
      T0 + HOUR,
    ).kind;
  expect([undefined, T0 + HOUR - 239_999, T0 + HOUR - 240_000].map(observe)).toEqual([
    'suspected',
    'suspected',
    'hung',
  ]);
});

describe('after an interruption', () => {
  const again = (progress: Partial<Progress>, seconds: number) => {
    const own: Partial<Attempt> = {
      trainingSince: T0 + HOUR,
      suspectedHangAt: T0,
      progress: { step: 100, phase: '', heartbeatAt: T0, movedAt: T0, ...progress },
    };
    return judgeHang({ attempt: attempt(own), job: job(), policy: policy() }, READ, T0 + HOUR + seconds * 1000);
  };

  test('beats from before it say nothing, but show that the driver beats', () => {
    expect(again({}, 3600).kind).toBe('moving');
    expect(again({}, 3601)).toMatchObject({ kind: 'hung', maySee: true });
  });

  test('the start-up budget holds until it moves again, and a longer phase goes before it', () => {
    const heartbeat = (seconds: number) => ({ heartbeatAt: T0 + HOUR + seconds * 1000 });
    expect(again(heartbeat(2400), 2400).kind).toBe('moving');
    expect(again(heartbeat(2401), 2401).kind).toBe('hung');
    expect(again({ ...heartbeat(6000), phase: 'load' }, 6000).kind).toBe('moving');
    expect(again({ ...heartbeat(2000), movedAt: T0 + HOUR }, 1801).kind).toBe('hung');
  });
});

describe('when a job last moved', () => {
  const START = { number: 0, firstStep: 1, firstStepAt: T0, step: 1, stepAt: T0, endedAt: null };
  const before: Progress = { step: 1, phase: '', heartbeatAt: T0, movedAt: T0 };
  const next = (heartbeat: object, was: Progress | undefined = before) =>
    nextProgress(
      attempt({ progress: was }),
      { attempt: 1, step: 2, phase: '', writtenAt: T0 + 10 * MINUTE, ...heartbeat },
      T0 + 12 * MINUTE,
    );

  test('is the age of its newest step in the heartbeat, by our clock', () => {
    const at = (stepAt: number | null) => next({ starts: [{ ...START, stepAt }] })?.movedAt;
    expect(at(T0 + 9 * MINUTE)).toBe(T0 + 11 * MINUTE);
    expect(at(T0 + 11 * MINUTE)).toBe(T0 + 12 * MINUTE);
    expect(at(T0 - HOUR)).toBe(T0);
    expect(at(null)).toBe(T0 + 12 * MINUTE);
  });

  test('is now when it was never seen, or when its phase changed', () => {
    const starts = [{ ...START, stepAt: T0 + 9 * MINUTE }];
    expect(nextProgress(attempt(), { attempt: 1, step: 2, phase: '', writtenAt: T0, starts }, T0 + HOUR)?.movedAt).toBe(
      T0 + HOUR,
    );
    expect(next({ starts, phase: 'save' })?.movedAt).toBe(T0 + 12 * MINUTE);
    expect(next({ step: 1, phase: 'save' })?.movedAt).toBe(T0 + 12 * MINUTE);
  });

  test('the same beat once more changes nothing', () => {
    expect(next({ step: 1, writtenAt: T0 })).toBe(before);
  });
});
