import { describe, expect, test } from 'vitest';
import { askHandOver, askStop } from '../../../../lib/core/lifecycle/intent';
import { ledger } from '../../../../lib/core/lifecycle/ledger';
import type { Heartbeat } from '../../../../lib/core/lifecycle/observed';
import type { RunRecord } from '../../../../lib/core/lifecycle/record';
import {
  attempt,
  checkpoint,
  failedJob,
  HOUR,
  job,
  MINUTE,
  policy,
  run,
  running,
  seeing,
  T0,
} from '../support/records';

const TEXT = 'asked to save and make room for urgent-261121130000';
const asked = (changes: Partial<RunRecord> = {}, at = T0 + HOUR): RunRecord => {
  const change = askHandOver(running({ queuedAt: T0 - HOUR, ...changes }), { why: 'preempted', at, text: TEXT });
  if (!change) throw new Error('nothing was asked');
  return change.record;
};
const live = seeing({ job: job() });
const heartbeat = (handOver: boolean): Heartbeat => ({
  attempt: 1,
  step: 500,
  phase: '',
  writtenAt: T0 + HOUR,
  vitals: {
    loss: 1,
    lossAlert: null,
    slowHost: null,
    stepsPerHour: null,
    usualStepsPerHour: null,
    restarts: 0,
    handOver,
  },
});
const asksAgain = (record: RunRecord, observed = live, at = T0 + HOUR) =>
  run(record, observed, at).actions.filter((a) => a.do === 'hand-over').length;

describe('a request to make room', () => {
  test('reaches the driver at once, and is written down first', () => {
    const { actions, record } = run(asked(), live);
    expect(actions.map((a) => a.do)).toEqual(['save', 'hand-over']);
    expect(actions[1]).toMatchObject({ attempt: 1, text: TEXT });
    expect(record).toMatchObject({ reason: TEXT, attempt: { handOver: { sentAt: T0 + HOUR } } });
  });

  test('is written again until the driver says that it has read it', () => {
    const { record } = run(asked(), live);
    expect(asksAgain(record, live, T0 + HOUR + MINUTE)).toBe(0);
    expect(asksAgain(record, live, T0 + HOUR + 5 * MINUTE)).toBe(1);
    const read = seeing({ job: job(), heartbeat: heartbeat(true) });
    expect(asksAgain(record, read, T0 + HOUR + 5 * MINUTE)).toBe(0);
  });

  test('is followed by a stop after the grace time, not before', () => {
    const { record } = run(asked(), live);
    expect(run(record, live, T0 + HOUR + 14 * MINUTE).effects).toEqual([]);
    const late = run(record, live, T0 + HOUR + 15 * MINUTE);
    expect(late.effects).toMatchObject([{ do: 'stop' }]);
    expect(late.record.attempt?.stop?.why).toBe('hand-over');
  });

  test('is no stop while the job uploads what it saved', () => {
    const { record } = run(asked(), live);
    const uploads = seeing({ job: job({ secondaryStatus: 'Uploading' }), heartbeat: heartbeat(true) });
    expect(run(record, uploads, T0 + HOUR + MINUTE).effects).toEqual([]);
  });

  test.each([
    ['no driver reads requests', { policy: policy({ writesHeartbeats: false }) }, job()],
    ['the job has no instances', {}, job({ secondaryStatus: 'Interrupted' })],
  ])('is a stop at once where %s', (_, changes, seen) => {
    const { effects, record } = run(asked(changes), seeing({ job: seen }));
    expect(effects).toMatchObject([{ do: 'stop' }]);
    expect(record.attempt?.stop?.why).toBe('hand-over');
  });

  test.each([
    ['is over', { state: 'failed' as const, attempt: attempt({ phase: 'ended' }) }],
    ['was asked before', { attempt: attempt({ handOver: { why: 'preempted', at: T0, text: TEXT } }) }],
    ['is being stopped', { desired: 'stop' as const }],
  ])('changes nothing of a run that %s', (_, changes) => {
    expect(askHandOver(running(changes), { why: 'preempted', at: T0, text: TEXT })).toBeUndefined();
  });
});

const LEFT = 'AlgorithmError: {"slipway":1,"class":"hand-over","code":76,"reason":"x"}, exit code: 76';

describe('an attempt that made room', () => {
  test.each([
    ['left with exit code 76', failedJob(LEFT)],
    ['asked to be tried again', failedJob('AlgorithmError: {"slipway":1,"class":"try-again","code":75}')],
    ['was stopped after the grace time', failedJob('', { status: 'Stopped', secondaryStatus: 'Stopped' })],
  ])('and %s is back in the queue at its place, and has cost no attempt', (_, over) => {
    const stop = { why: 'hand-over' as const, at: T0, text: TEXT };
    const before = asked();
    const record = over.status === 'Stopped' ? { ...before, attempt: attempt({ ...before.attempt, stop }) } : before;
    const after = run(record, seeing({ job: over }, [500]), T0 + 2 * HOUR);
    expect(after.record).toMatchObject({
      state: 'queued',
      admitted: false,
      reason: TEXT,
      queuedAt: T0 - HOUR,
      preemptedAt: T0 + 2 * HOUR,
      committed: checkpoint(500),
      attempt: { failureClass: 'planned', phase: 'ended' },
      budgets: { failures: 0, stale: 0 },
    });
    expect(after.record.notBefore).toBeUndefined();
    expect(after.events.slice(1)).toEqual(['checkpoint-committed', 'attempt-ended', 'run-preempted', 'notice']);
    expect(after.notices).toEqual(['preempted']);
  });

  test('before anything new was committed costs no attempt either, however often', () => {
    let record = asked({ policy: policy({ maxAttempts: 1, seesCommits: false }) });
    for (let i = 0; i < 5; i++) {
      record = run(record, seeing({ job: failedJob(LEFT) }), T0 + 2 * HOUR).record;
      expect(record).toMatchObject({ state: 'queued', budgets: { failures: 0, stale: 0 } });
      record = asked({ ...record, state: 'running', admitted: true, attempt: attempt(), outbox: [] });
    }
  });

  test('fails as it would have failed, and gives its room up all the same', () => {
    const crash = run(asked(), seeing({ job: failedJob('InternalServerError: x') }), T0 + 2 * HOUR);
    expect(crash.record).toMatchObject({ state: 'queued', admitted: false, attempt: { failureClass: 'platform' } });
    const user = run(asked(), seeing({ job: failedJob('AlgorithmError: exit code: 1') }), T0 + 2 * HOUR);
    expect(user.record.state).toBe('failed');
  });

  test('completes where it reached its end first', () => {
    const done = job({ status: 'Completed', secondaryStatus: 'Completed', endedAt: T0 + HOUR });
    expect(run(asked(), seeing({ job: done }), T0 + 2 * HOUR).record.state).toBe('completed');
  });

  test('stays stopped where a person stopped it meanwhile', () => {
    const record = askStop(asked(), 'stopped as asked', T0)?.record as RunRecord;
    const over = failedJob('', { status: 'Stopped', secondaryStatus: 'Stopped' });
    expect(run(record, seeing({ job: over }), T0 + 2 * HOUR).record).toMatchObject({ state: 'stopped' });
  });
});

test('the time after it counts as queued, not as a gap', () => {
  const at = (what: string, hours: number) => ({ at: T0 + hours * HOUR, what, text: '', evidence: {} });
  const { seconds } = ledger([at('attempt-ended', 0), at('run-preempted', 0)], T0 + 3 * HOUR);
  expect(seconds).toMatchObject({ queued: 3 * 3600, gap: 0 });
});

test('a wait is told of a day after it made room, not a day after it first joined', () => {
  const record = running({
    state: 'queued',
    admitted: false,
    attempt: attempt({ phase: 'ended' }),
    queuedAt: T0 - 40 * HOUR,
    preemptedAt: T0,
  });
  expect(run(record, seeing(), T0 + 23 * HOUR).notices).toEqual([]);
  expect(run(record, seeing(), T0 + 24 * HOUR).notices).toEqual(['queue-wait']);
});
