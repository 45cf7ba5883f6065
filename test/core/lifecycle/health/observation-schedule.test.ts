import { describe, expect, test } from 'vitest';
import { nextProgress } from '../../../../lib/core/lifecycle/health/hang';
import {
  isDueForListing,
  isDueForObservation,
  isSteady,
  isWorthWriting,
} from '../../../../lib/core/lifecycle/health/observation-schedule';
import { mergeStarts } from '../../../../lib/core/lifecycle/health/step-times';
import type { RunRecord } from '../../../../lib/core/lifecycle/record';
import { attempt, job as jobOf, MINUTE, running, T0 } from '../support/records';

const TICK = 5 * MINUTE;
const start = { number: 0, firstStep: 1, firstStepAt: T0, step: 90, stepAt: T0 + 15 * MINUTE, endedAt: null };
const progress = { step: 90, phase: '', heartbeatAt: T0 + 15 * MINUTE, movedAt: T0 + 15 * MINUTE, starts: [start] };
const TRAINING = { phase: 'created', status: 'InProgress', secondaryStatus: 'Training' } as const;
const steady = (of: object = {}, more: Partial<RunRecord> = {}) =>
  running({ state: 'running', outbox: [], attempt: attempt({ ...TRAINING, progress, ...of }), ...more });
const job = jobOf({ status: 'InProgress', secondaryStatus: 'Training' });
const count = (ticks: number, isDue: (now: number) => boolean) =>
  Array.from({ length: ticks }, (_, i) => isDue(T0 + i * TICK)).filter(Boolean).length;

describe('a run that trains as it should', () => {
  test('is looked at in every second tick, and its checkpoints are listed once an hour', () => {
    expect(count(288, (now) => isDueForObservation(steady(), now))).toBe(144);
    expect(count(288, (now) => isDueForListing(steady(), job, now))).toBe(24);
  });

  test('is never listed in a tick that does not look at it', () => {
    const ids = Array.from({ length: 50 }, (_, i) => `run-${i}`);
    const both = ids.map((runId) => steady({}, { runId }));
    const ticks = Array.from({ length: 24 }, (_, i) => T0 + i * TICK);
    expect(both.every((run) => ticks.every((t) => !isDueForListing(run, job, t) || isDueForObservation(run, t)))).toBe(
      true,
    );
    expect(new Set(both.map((run) => isDueForObservation(run, T0)))).toEqual(new Set([true, false]));
  });

  test('is listed at every observation when its job has changed, or when it is near its spend cap', () => {
    expect(count(12, (now) => isDueForListing(steady(), { ...job, secondaryStatus: 'Uploading' }, now))).toBe(12);
    const policy = { ...steady().policy, maxCostUsd: 1 };
    expect(count(12, (now) => isDueForListing(steady({}, { policy }), job, now))).toBe(12);
  });
});

test.each([
  ['waits in the queue', {}, { state: 'queued' }],
  ['is to stop', {}, { desired: 'stop' }],
  ['has something to tell', {}, { outbox: [{ id: 'a', alert: 'a', text: '', runbook: 'a', at: T0 }] }],
  ['is stopping', { stop: { why: 'user', at: T0, text: '' } }, {}],
  ['was asked to make room', { handOver: { why: 'preempted', at: T0, text: '' } }, {}],
  ['may hang', { suspectedHangAt: T0 }, {}],
  ['cannot be read', { unreadSince: T0 }, {}],
  ['saves where nothing can be listed', { unlistedSince: T0 }, {}],
  ['beats no more', { aliveAt: T0 }, {}],
  ['was not found', { absentSince: T0 }, {}],
  ['waits for capacity', { secondaryStatus: 'Pending' }, {}],
  ['has made no step', { progress: { ...progress, starts: [{ ...start, stepAt: null }] } }, {}],
  ['starts its ranks again', { progress: { ...progress, starts: [{ ...start, endedAt: T0 }] } }, {}],
  ['has a driver that does not time its steps', { progress: { ...progress, starts: undefined } }, {}],
])('a run that %s is looked at in every tick', (_, of, more) => {
  const run = steady(of as object, more as Partial<RunRecord>);
  expect(isSteady(run)).toBe(false);
  expect(count(12, (now) => isDueForObservation(run, now))).toBe(12);
});

describe('progress', () => {
  const later = (minutes: number, more: object = {}, other: object = {}) => {
    const at = progress.heartbeatAt + minutes * MINUTE;
    const starts = [{ ...start, step: 200, stepAt: at - 10_000, ...more }];
    return steady({
      lastStep: 200,
      progress: { ...progress, step: 200, heartbeatAt: at, movedAt: at, starts },
      ...other,
    });
  };

  test('alone is written once an hour', () => {
    expect([5, 55, 60, 90].map((minutes) => isWorthWriting(steady(), later(minutes)))).toEqual([
      false,
      false,
      true,
      true,
    ]);
  });

  test('is written at once when steps no longer go on, or when anything beside it changed', () => {
    expect(isWorthWriting(steady(), later(20, { stepAt: progress.heartbeatAt + 9 * MINUTE }))).toBe(true);
    expect(isWorthWriting(steady(), later(5, {}, { unreadSince: T0 }))).toBe(true);
    expect(isWorthWriting(steady(), later(5, {}, { selected: { instanceType: 'a', instanceCount: 1 } }))).toBe(true);
    expect(isWorthWriting(steady(), { ...later(5), reason: 'other' })).toBe(true);
  });
});

describe('starts of a driver', () => {
  const said = (number: number, from: number, last: number | null) => ({
    number,
    firstStep: last === null ? null : 1,
    firstStepAt: last === null ? null : from,
    step: last,
    stepAt: last === null ? null : from + last * 1000,
    endedAt: null,
  });

  test('are numbered on when the service starts the container again and its driver counts from 0 again', () => {
    const first = mergeStarts(undefined, [said(0, T0, 90), said(1, T0 + MINUTE, 50)]);
    const waiting = mergeStarts(first, [said(0, T0 + 10 * MINUTE, null)]);
    const second = mergeStarts(waiting, [said(0, T0 + 10 * MINUTE, 5)]);
    const later = mergeStarts(second, [said(0, T0 + 10 * MINUTE, 900), said(1, T0 + 30 * MINUTE, 3)]);
    expect(waiting.starts.map((start) => start.stepAt !== null)).toEqual([true, true, false]);
    expect(later.starts.map(({ number, step }) => [number, step])).toEqual([
      [0, 90],
      [1, 50],
      [2, 900],
      [3, 3],
    ]);
  });
});

test('an observation that was left out does not make a stand-still look shorter', () => {
  const starts = [{ ...start, step: 120, stepAt: T0 + 20 * MINUTE }];
  const heartbeat = { attempt: 1, step: 120, phase: '', writtenAt: T0 + 29 * MINUTE, starts };
  const next = nextProgress(attempt({ ...TRAINING, progress }), heartbeat, T0 + 30 * MINUTE);
  expect(next?.movedAt).toBe(T0 + 21 * MINUTE);
});
