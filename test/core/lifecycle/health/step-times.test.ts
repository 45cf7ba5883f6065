import { describe, expect, test } from 'vitest';
import { mergeStarts, stepEvents, stepsOf, unseenSteps } from '../../../../lib/core/lifecycle/health/step-times';
import type { Attempt, StartTimes } from '../../../../lib/core/lifecycle/record';
import { attempt, HOUR, MINUTE, T0 } from '../support/records';

const NEVER = { firstStep: null, firstStepAt: null, step: null, stepAt: null, endedAt: null };
const start = (number: number, more: Partial<StartTimes> = {}): StartTimes => ({
  number,
  firstStep: 10 * number + 1,
  firstStepAt: T0 + number * HOUR + MINUTE,
  step: 10 * number + 5,
  stepAt: T0 + number * HOUR + 5 * MINUTE,
  endedAt: null,
  ...more,
});
const over = (number: number, more: Partial<StartTimes> = {}) =>
  start(number, { endedAt: T0 + number * HOUR + 6 * MINUTE, ...more });
const progressOf = (starts: StartTimes[] | undefined) => ({ step: 5, phase: '', heartbeatAt: T0, movedAt: T0, starts });
const seen = (starts: StartTimes[] | undefined, more: Partial<Attempt> = {}) =>
  attempt({ progress: progressOf(starts), ...more });
const lines = (before: Attempt, after: Attempt, now = T0 + 24 * HOUR) =>
  stepEvents(before, after, now).map(({ what, text, at }) => [what, text, (at - T0) / MINUTE]);

describe('the timeline of steps', () => {
  test('has the first step once, when it is first seen', () => {
    expect(lines(attempt(), seen([start(0)]))).toEqual([['first-step', 'step 1', 1]]);
    expect(lines(seen([start(0, NEVER)]), seen([start(0)]))).toEqual([['first-step', 'step 1', 1]]);
    expect(lines(seen([start(0)]), seen([start(0, { step: 9 })]))).toEqual([]);
    expect(lines(attempt(), seen([start(0, NEVER)]))).toEqual([]);
  });

  test('has the phases of a start with its first step', () => {
    const phases = { stop: 0.5, prepare: 1 };
    expect(stepEvents(attempt(), seen([start(0, { phases })]), T0 + HOUR)[0]?.evidence).toMatchObject({ phases });
  });

  test('has the last step once: when its ranks left, when another start follows, or when the attempt is over', () => {
    const last = ['last-step', 'step 5', 5];
    expect(lines(seen([start(0)]), seen([over(0)]))).toEqual([last]);
    expect(lines(seen([over(0)]), seen([over(0)]))).toEqual([]);
    expect(lines(seen([start(0)]), seen([start(0), start(1, NEVER)]))).toEqual([last]);
    expect(lines(seen([start(0), start(1, NEVER)]), seen([start(0), start(1, NEVER)]))).toEqual([]);
    expect(lines(seen([start(0)]), seen([start(0)], { phase: 'ended' }))).toEqual([last]);
    expect(lines(seen([start(0)]), seen([start(0, { stepAt: null })], { phase: 'ended' }))).toEqual([]);
  });

  test('tells of a restart in place when its successor is first seen', () => {
    const both = seen([over(0), start(1)]);
    const restart = ['ranks-restarted', 'restart in place 1 after step 5', 6];
    expect(lines(seen([over(0)]), both)).toEqual([restart, ['first-step', 'step 11', 61]]);
    expect(lines(both, both)).toEqual([]);
    expect(lines(seen([start(0)]), seen([start(0), start(1, NEVER)])).map(([what]) => what)).toEqual(['last-step']);
    const stepless = over(0, { ...NEVER, endedAt: T0 + 6 * MINUTE });
    expect(lines(attempt(), seen([stepless, start(1, NEVER)]))).toEqual([
      ['ranks-restarted', 'restart in place 1 after step -', 6],
    ]);
  });

  test('keeps within the attempt: not before training, not after its end, not after now', () => {
    const times = { firstStepAt: T0 - HOUR, stepAt: T0 + 9 * HOUR };
    const at = (more: Partial<Attempt>, now: number) =>
      lines(attempt(), seen([start(0, times)], { phase: 'ended', ...more }), now).map(([, , minutes]) => minutes);
    expect(at({}, T0 + 10 * HOUR)).toEqual([0, 540]);
    expect(at({}, T0 + 8 * HOUR)).toEqual([0, 480]);
    expect(at({ endedAt: T0 + 7 * HOUR }, T0 + 8 * HOUR)).toEqual([0, 420]);
    expect(at({ trainingStartedAt: undefined, intentAt: T0 - MINUTE }, T0 + 10 * HOUR)).toEqual([-1, 540]);
  });
});

describe('steps of an attempt', () => {
  test('are the first of the first start that stepped, and the newest of the last', () => {
    expect(stepsOf(progressOf([start(0, NEVER), start(1), start(2), start(3, NEVER)]))).toEqual({
      first: 11,
      last: 25,
    });
  });

  test('without starts come from what the driver says of its first step', () => {
    const vitals = { loss: null, lossAlert: null, slowHost: null, usualStepsPerHour: null, restarts: 0, firstStep: 7 };
    expect(stepsOf({ ...progressOf(undefined), vitals: { ...vitals, stepsPerHour: null } })).toEqual({
      first: 7,
      last: null,
    });
    expect(stepsOf(undefined)).toEqual({ first: null, last: null });
  });
});

describe('starts that a record keeps', () => {
  test('are the newest forty', () => {
    const { starts } = mergeStarts(
      undefined,
      Array.from({ length: 50 }, (_, i) => over(i)),
    );
    expect([starts.length, starts[0]?.number, starts[39]?.number]).toEqual([40, 10, 49]);
  });

  test('are taken for those of a new driver when the first step came more than ten seconds after the known newest one', () => {
    const known = { starts: [start(0)], earlierStarts: 0 };
    const said = (firstStepAt: number) => mergeStarts(known, [start(0, { firstStepAt })]).starts.length;
    expect(said(T0 + 5 * MINUTE + 10_000)).toBe(1);
    expect(said(T0 + 5 * MINUTE + 10_001)).toBe(2);
  });

  test('of a driver that has not stepped say nothing about those before it', () => {
    const known = { starts: [start(0, { stepAt: null })], earlierStarts: 0 };
    expect(mergeStarts(known, [start(0, { firstStepAt: T0 + 9 * HOUR })])).toMatchObject({
      earlierStarts: 0,
      starts: [{ number: 0, firstStepAt: T0 + 9 * HOUR }],
    });
  });
});

describe('an attempt whose steps nobody timed', () => {
  const told = (more: Partial<Attempt>, before: Partial<Attempt> = {}) =>
    unseenSteps(attempt(before), attempt({ phase: 'ended', endedAt: T0 + HOUR, ...more }), T0 + 2 * HOUR).map(
      ({ what, at }) => [what, (at - T0) / MINUTE],
    );

  test('is told of when it stepped, or trained for two minutes without a heartbeat', () => {
    expect(told({ lastStep: 5 })).toEqual([['steps-unseen', 60]]);
    expect(told({})).toEqual([['steps-unseen', 60]]);
    expect(told({ endedAt: T0 + 2 * MINUTE })).toEqual([['steps-unseen', 2]]);
    expect(told({ endedAt: undefined, lastStep: 5 })).toEqual([['steps-unseen', 120]]);
    expect(told({ endedAt: T0 + 9 * HOUR, lastStep: 5 })).toEqual([['steps-unseen', 120]]);
  });

  test.each<[string, Partial<Attempt>, Partial<Attempt>]>([
    ['its first step was seen', { lastStep: 5 }, { firstStep: 1 }],
    ['its driver timed one', { lastStep: 5, progress: progressOf([start(0)]) }, {}],
    ['it never trained', { trainingStartedAt: undefined }, {}],
    ['it trained for less than two minutes', { endedAt: T0 + 2 * MINUTE - 1 }, {}],
    ['its driver beat without a step', { progress: progressOf([start(0, NEVER)]) }, {}],
  ])('is not told of when %s', (_, more, before) => {
    expect(told(more, before)).toEqual([]);
  });
});
