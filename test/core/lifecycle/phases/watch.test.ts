import { describe, expect, test } from 'vitest';
import { decide } from '../../../../lib/core/lifecycle/decide';
import type { Heartbeat } from '../../../../lib/core/lifecycle/observed';
import type { Attempt, PresentJob, RunRecord } from '../../../../lib/core/lifecycle/record';
import { attempt, checkpoint, HOUR, job, MINUTE, policy, run, running, seeing, T0 } from '../support/records';

const NOW = T0 + HOUR;
const heartbeat = (changes: Partial<Heartbeat> = {}): Heartbeat => ({
  attempt: 1,
  step: 10,
  phase: '',
  writtenAt: NOW,
  ...changes,
});
const observe = (record: RunRecord, seen: Partial<PresentJob> = {}, observed: object = {}, now = NOW) =>
  run(record, seeing({ job: job(seen), ...observed }), now);
const PROGRESS = { step: 10, phase: '', heartbeatAt: NOW, movedAt: NOW };

describe('alarms of a live job begin exactly', () => {
  const alertsOf = (own: Partial<Attempt>, now: number, seen: Partial<PresentJob> = {}, observed: object = {}) =>
    observe(running({ attempt: attempt(own) }), seen, observed, now).notices;

  test.each(['Starting', 'Pending'])('an hour after the job was accepted, while it is %s', (secondaryStatus) => {
    const own = { acceptedAt: T0 + MINUTE };
    expect(alertsOf(own, T0 + HOUR + MINUTE - 1, { secondaryStatus })).toEqual([]);
    expect(alertsOf(own, T0 + HOUR + MINUTE, { secondaryStatus })).toEqual(['capacity-wait']);
    expect(alertsOf({ acceptedAt: undefined, intentAt: T0 }, T0 + HOUR, { secondaryStatus })).toEqual([
      'capacity-wait',
    ]);
    expect(alertsOf(own, T0 + 9 * HOUR, { secondaryStatus: 'Downloading' })).toEqual([]);
  });

  test.each(['Starting', 'Pending'])(
    'an hour after its instances were taken away, while it is %s again',
    (secondaryStatus) => {
      const taken = T0 + 9 * HOUR;
      const own = { acceptedAt: T0, trainingStartedAt: T0 };
      const seen = { secondaryStatus, pauses: { ms: 0, since: taken } };
      expect(alertsOf(own, taken + HOUR - 1, seen)).toEqual([]);
      expect(alertsOf(own, taken + HOUR, seen)).toEqual(['capacity-wait']);
    },
  );

  test('again in each stretch with instances: what was said of the one before is over', () => {
    const waits = (since: number, alerts: readonly string[]) => {
      const record = running({ attempt: attempt({ acceptedAt: T0, trainingStartedAt: T0 }), alerts });
      const seen = job({ secondaryStatus: 'Starting', pauses: { ms: 0, since } });
      const [save] = decide(record, seeing({ job: seen }), since + 2 * HOUR);
      return save?.do === 'save' ? save.record.alerts : [];
    };
    const first = waits(T0 + HOUR, []);
    expect(first).toHaveLength(1);
    expect(waits(T0 + HOUR, first)).toEqual(first);
    expect(waits(T0 + 30 * HOUR, first)).toHaveLength(2);
  });

  test('an hour after a stop that did not end it', () => {
    const own = { stop: { why: 'user' as const, at: T0, text: '', sentAt: T0 } };
    const stopping = { status: 'Stopping', secondaryStatus: 'Stopping' };
    expect(alertsOf(own, T0 + HOUR - 1, stopping)).toEqual([]);
    expect(alertsOf(own, T0 + HOUR, stopping)).toEqual(['stop-takes-long']);
  });

  test('twenty minutes after its heartbeat could not be read', () => {
    const own = { unreadSince: T0, progress: { ...PROGRESS, heartbeatAt: T0, movedAt: T0 } };
    const error = { heartbeatError: '503' };
    expect(alertsOf(own, T0 + 20 * MINUTE - 1, {}, error)).toEqual([]);
    expect(alertsOf(own, T0 + 20 * MINUTE, {}, error)).toEqual(['heartbeat-unreadable']);
  });

  test('twenty minutes after its checkpoints could not be listed, also when they are not listed at each observation', () => {
    const denied = { checkpoints: { kind: 'unreadable' as const, error: 'AccessDenied' } };
    const first = observe(running({ attempt: attempt({ progress: PROGRESS }) }), {}, denied).record.attempt ?? {};
    const between = observe(running({ attempt: attempt(first) }), {}, { checkpoints: { kind: 'not-asked' } }).record
      .attempt;
    expect(between).toMatchObject({ unlistedSince: expect.any(Number) });
    const own = { unlistedSince: T0 };
    expect(alertsOf(own, T0 + 20 * MINUTE - 1, {}, denied)).toEqual([]);
    expect(alertsOf(own, T0 + 20 * MINUTE, {}, denied)).toEqual(['checkpoints-unreadable']);
  });
});

describe('a stop', () => {
  const sent = (sentAt: number | undefined, seen: Partial<PresentJob> = {}) =>
    observe(running({ attempt: attempt({ stop: { why: 'user', at: T0, text: 'x', sentAt } }) }), seen).effects;

  test('is sent when it never was, and again three minutes later', () => {
    expect(sent(undefined)).toMatchObject([{ do: 'stop', jobName: attempt().jobName }]);
    expect(sent(NOW - 3 * MINUTE)).toHaveLength(1);
    expect(sent(NOW - 3 * MINUTE + 1)).toEqual([]);
  });

  test('is not sent to a job that stops already', () => {
    expect(sent(undefined, { status: 'Stopping', secondaryStatus: 'Stopping' })).toEqual([]);
  });

  test('keeps its first reason, whatever is wanted later', () => {
    const own = attempt({ stop: { why: 'hang', at: T0, text: 'silent', sentAt: NOW } });
    const { record } = observe(running({ desired: 'stop', attempt: own, policy: policy({ maxCostUsd: 1 }) }));
    expect(record.attempt?.stop).toMatchObject({ why: 'hang', at: T0 });
    expect(record).toMatchObject({ state: 'stopping', reason: 'silent' });
  });

  test('is written into the timeline once', () => {
    const first = observe(running({ desired: 'stop' }));
    expect(first.events).toEqual(['stop-decided']);
    expect(observe({ ...first.record, outbox: [] }, {}, {}, NOW + 4 * MINUTE).events).toEqual([]);
  });
});

describe('what is copied from an observation', () => {
  test('a job that goes on training again says since when, where the service does not', () => {
    const since = (secondaryStatus: string, own: Partial<Attempt> = {}, seen: Partial<PresentJob> = {}) =>
      observe(running({ attempt: attempt({ secondaryStatus, ...own }) }), seen).record.attempt?.trainingSince;
    for (const status of ['Interrupted', 'Restarting', 'Starting', 'Pending', 'Downloading'])
      expect(since(status)).toBe(NOW);
    expect(since('Training', { trainingSince: T0 })).toBe(T0);
    expect(since('Starting', {}, { secondaryStatus: 'Pending' })).toBeUndefined();
    expect(since('Starting', { trainingStartedAt: undefined }, { trainingStartedAt: T0 })).toBeUndefined();
    expect(since('Starting', {}, { trainingSince: T0 + MINUTE })).toBe(T0 + MINUTE);
  });

  test('it is alive although its heartbeats are more than three minutes late, told once a minute', () => {
    const aliveAt = (heartbeatAt: number, own: Partial<Attempt> = {}) =>
      observe(running({ attempt: attempt({ progress: { ...PROGRESS, heartbeatAt, movedAt: heartbeatAt }, ...own }) }))
        .record.attempt?.aliveAt;
    expect(aliveAt(NOW - 3 * MINUTE)).toBeUndefined();
    expect(aliveAt(NOW - 3 * MINUTE - 1)).toBe(NOW);
    expect(aliveAt(NOW - 4 * MINUTE, { aliveAt: NOW - MINUTE + 1 })).toBe(NOW - MINUTE + 1);
    expect(aliveAt(NOW - 4 * MINUTE, { aliveAt: NOW - MINUTE })).toBe(NOW);
    expect(aliveAt(NOW - 4 * MINUTE, { aliveAt: NOW + MINUTE })).toBe(NOW);
  });

  test('a job of which no heartbeat was ever read is alive when the service says so', () => {
    const { record } = observe(running({ attempt: attempt({ progress: undefined }) }), {}, { heartbeatError: '403' });
    expect(record.attempt?.aliveAt).toBe(NOW);
  });

  test('a heartbeat counts as unread from the first observation that missed it until one reads it', () => {
    const since = (own: Partial<Attempt>, observed: object) =>
      observe(running({ attempt: attempt(own) }), {}, observed).record.attempt?.unreadSince;
    expect(since({ progress: PROGRESS }, {})).toBe(NOW);
    expect(since({ progress: PROGRESS, unreadSince: T0 }, {})).toBe(T0);
    expect(since({}, {})).toBeUndefined();
    expect(since({}, { heartbeatError: '503' })).toBe(NOW);
    expect(since({ progress: PROGRESS, unreadSince: T0 }, { heartbeat: heartbeat() })).toBeUndefined();
  });

  test('the first and the newest step', () => {
    const steps = (own: Partial<Attempt>, heartbeat?: Heartbeat) => {
      const { firstStep, lastStep } =
        observe(running({ attempt: attempt(own) }), {}, { heartbeat }).record.attempt ?? {};
      return [firstStep, lastStep];
    };
    expect(steps({}, heartbeat())).toEqual([10, 10]);
    expect(steps({ firstStep: 3, lastStep: 9 }, heartbeat())).toEqual([3, 10]);
    expect(steps({ firstStep: 3, lastStep: 9 })).toEqual([3, 9]);
    expect(steps({ lastStep: 9 }, heartbeat({ step: null }))).toEqual([null, 9]);
  });
});

describe('the timeline of a live job', () => {
  test('has a line for each change of status', () => {
    expect(observe(running(), {}).events).toEqual([]);
    expect(observe(running(), { secondaryStatus: 'Uploading' }).events).toEqual(['job-status']);
    expect(observe(running(), { status: 'Stopping' }).events).toEqual(['job-status']);
  });

  test('has a declared phase when it begins, and the one after it, but no start', () => {
    const phases = (before: string | undefined, phase: string) =>
      observe(
        running({
          attempt: attempt({
            firstStep: 1,
            progress: before === undefined ? undefined : { ...PROGRESS, phase: before },
          }),
        }),
        {},
        { heartbeat: heartbeat({ phase, writtenAt: NOW + 1 }) },
      ).actions.flatMap((a) => (a.do === 'save' ? a.events.map((e) => e.text) : []));
    expect(phases('', 'save')).toEqual(['phase save']);
    expect(phases('save', '')).toEqual(['phase train']);
    expect(phases('save', 'save')).toEqual([]);
    expect(phases(undefined, 'start')).toEqual([]);
    expect(phases(undefined, 'load')).toEqual(['phase load']);
  });

  test('has the first step of a driver that times none when it is first seen', () => {
    expect(observe(running(), {}, { heartbeat: heartbeat() }).events).toContain('first-step');
    expect(observe(running({ attempt: attempt({ firstStep: 1 }) }), {}, { heartbeat: heartbeat() }).events).toEqual([
      'phase',
    ]);
  });

  test('has a commit at the time of its marker, not after now', () => {
    const at = (committedAt: Record<string, number>) =>
      observe(running(), {}, { checkpoints: { kind: 'listed', committed: [checkpoint(50)], torn: [], committedAt } })
        .actions.flatMap((a) => (a.do === 'save' ? a.events : []))
        .map((e) => e.at);
    expect(at({ [checkpoint(50).uri]: T0 + MINUTE })).toEqual([T0 + MINUTE]);
    expect(at({ [checkpoint(50).uri]: NOW + MINUTE })).toEqual([NOW]);
    expect(at({})).toEqual([NOW]);
    expect(observe(running({ committed: checkpoint(50) }), {}, seeing({}, [50])).events).toEqual([]);
  });
});

test('the wait for capacity is over once the job trains', () => {
  const budgets = { failures: 0, stale: 0, stalePlatform: 0, byClass: {}, capacityTries: 2, capacitySince: T0 };
  const after = (secondaryStatus: string) => observe(running({ budgets }), { secondaryStatus }).record.budgets;
  expect(after('Training')).toMatchObject({ capacityTries: 0, capacitySince: undefined });
  expect(after('Downloading')).toEqual(budgets);
});

test('a hang that cannot be seen to be one is told of, and remembered from its first observation on', () => {
  const blind = running({ policy: policy({ seesSteps: false, writesHeartbeats: true }) });
  const first = observe(blind, {}, {}, T0 + 3 * HOUR);
  expect(first.record.attempt?.suspectedHangAt).toBe(T0 + 3 * HOUR);
  const second = observe(first.record, {}, {}, T0 + 3 * HOUR + 4 * MINUTE);
  expect(second.notices).toEqual(['hang-suspected']);
  expect(second.effects).toEqual([]);
  expect(second.record.attempt?.suspectedHangAt).toBe(T0 + 3 * HOUR);
  expect(second.record.attempt?.stop).toBeUndefined();
  const moving = observe(second.record, {}, { heartbeat: heartbeat({ writtenAt: T0 + 4 * HOUR }) }, T0 + 4 * HOUR);
  expect(moving.record.attempt?.suspectedHangAt).toBeUndefined();
});
