// What a run does while something cannot be read, and when that happens again.
import { describe, expect, test } from 'vitest';
import { admitRun, askResume } from '../../../lib/core/lifecycle/intent';
import type { Observed } from '../../../lib/core/lifecycle/observed';
import { blockedRun } from '../../../lib/core/lifecycle/phases/wait';
import { checkpointKey, type RunRecord } from '../../../lib/core/lifecycle/record';
import { admitted, attempt, HOUR, job, MINUTE, policy, run, running, seeing, T0 } from './support/records';

const DAY = 24 * HOUR;
const UNREADABLE = { job: { kind: 'unreadable', error: 'ThrottlingException' } } as const;
const listed = (committed: readonly object[] = []) =>
  ({ kind: 'listed', committed, torn: [] }) as unknown as Observed['checkpoints'];

/** A run that a used-up quota has sent back to the queue: its attempt is open, and no job exists. */
const waits = (more: Partial<RunRecord> = {}) =>
  admitted({
    ...{ admitted: false, state: 'queued', policy: policy({ maxCostUsd: 500 }) },
    attempt: attempt({
      ...{ phase: 'intent', status: '', secondaryStatus: '', trainingStartedAt: undefined, acceptedAt: undefined },
      ...{ jobCreatedAt: undefined, jobArn: undefined, createTries: 1, unmadeTries: 1, lastCreateAt: T0 },
      progress: undefined,
    }),
    ...more,
  });

describe('a run in the queue whose calls have made no job', () => {
  test('is not stopped for its spend when Describe fails', () => {
    const { record, effects } = run(waits(), seeing(UNREADABLE), T0 + 6 * HOUR);
    expect([record.state, effects]).toEqual(['queued', []]);
  });

  test('has no outage that lasts from one failed Describe to another', () => {
    let { record } = run(waits({ policy: policy() }), seeing(UNREADABLE), T0 + 10 * MINUTE);
    for (let i = 3; i < 20; i++)
      record = run(record, seeing({ job: { kind: 'absent' }, checkpoints: listed() }), T0 + i * 5 * MINUTE).record;
    expect(run(record, seeing(UNREADABLE), T0 + 100 * MINUTE).notices).toEqual([]);
  });

  test('is stopped as asked although Describe fails', () => {
    const { record } = run(waits({ desired: 'stop' }), seeing(UNREADABLE), T0 + 6 * HOUR);
    expect(record.state).toBe('stopped');
  });
});

test('a run that was resumed keeps its capacity for an hour while its checkpoints cannot be read', () => {
  const ended = attempt({ phase: 'ended', endedAt: T0, failureClass: 'platform' });
  const resumed = askResume(admitted({ state: 'stopped', desired: 'stop', attempt: ended, endedAt: T0 }), T0 + DAY);
  if (!resumed) throw new Error('it is over');
  const { record: let_ } = admitRun(resumed.record, 'admitted by the queue', T0 + DAY);
  const outage = seeing({ checkpoints: { kind: 'unreadable', error: 'SlowDown' } });
  const after = (ms: number) => run(let_, outage, T0 + DAY + ms).record.admitted;
  expect([after(MINUTE), after(61 * MINUTE)]).toEqual([true, false]);
});

test('a job that is found again holds its instances again', () => {
  let record = running({ policy: policy({ writesHeartbeats: false }) });
  const gone = seeing({ job: { kind: 'absent' }, checkpoints: { kind: 'unreadable', error: '503' } });
  for (const minutes of [20, 25, 60, 85, 90]) record = run(record, gone, T0 + minutes * MINUTE).record;
  expect(record.admitted).toBe(false);
  record = run(record, seeing({ job: job(), checkpoints: listed() }), T0 + 95 * MINUTE).record;
  expect(record).toMatchObject({ state: 'running', admitted: true });
});

test('a checkpoint of own code that was written again after it could not be read is used', () => {
  const at = (step: number, writtenAt: number) => ({ uri: `s3://b/x/step-${step}/`, step, attempt: null, writtenAt });
  const [older, bad, again] = [at(100, T0), at(200, T0 + HOUR), at(200, T0 + 3 * HOUR)];
  const ended = attempt({ phase: 'ended', number: 3, endedAt: T0 + 4 * HOUR, failureClass: 'platform' });
  const resumesFrom = (newest: object) => {
    const record = admitted({ badCheckpoints: [checkpointKey(bad)], committed: bad, attempt: ended });
    return run(record, seeing({ checkpoints: listed([newest, older]) }), T0 + 5 * HOUR).record.attempt?.resumeFrom;
  };
  expect([resumesFrom(bad), resumesFrom(again)]).toEqual([older, again]);
});

describe('a notice', () => {
  /** Plays an observation every ten minutes; notices are published at once. */
  function play(before: RunRecord, [from, hours]: readonly [number, number], observed: Partial<Observed>) {
    const told: string[] = [];
    let record = before;
    for (let now = from; now <= from + hours * HOUR; now += 10 * MINUTE) {
      const done = run(record, seeing(observed), now);
      told.push(...done.notices);
      record = { ...done.record, outbox: [] };
    }
    return { record, told };
  }

  test.each<[string, Partial<Observed>]>([
    ['heartbeat-unreadable', { job: job(), heartbeatError: 'AccessDenied' }],
    ['checkpoints-unreadable', { job: job(), checkpoints: { kind: 'unreadable', error: 'AccessDenied' } }],
    ['job-unreadable', UNREADABLE],
  ])('%s is sent for each outage of an attempt', (alert, outage) => {
    const start = running({ policy: policy({ seesSteps: false, writesHeartbeats: false }) });
    const first = play(start, [T0 + 2 * DAY, 2], outage);
    const heartbeat = { attempt: 1, step: 9, phase: '', writtenAt: T0 + 3 * DAY };
    const { record } = run(first.record, seeing({ job: job(), heartbeat, checkpoints: listed() }), T0 + 3 * DAY);
    const second = play({ ...record, outbox: [] }, [T0 + 10 * DAY, 12], outage);
    expect([first, second].map(({ told }) => told.filter((one) => one === alert).length)).toEqual([1, 1]);
  });

  test('of a run that others wait for is sent for each of its ends', () => {
    const waiting = admitted({ runId: 'b', admitted: false, state: 'queued', after: ['a'] });
    const failed = admitted({ runId: 'a', state: 'failed', endedAt: T0 });
    const told = (record: RunRecord, other: RunRecord) => blockedRun(record, new Map([['a', other]]), T0 + 9 * HOUR);
    const once = told(waiting, failed)?.record ?? waiting;
    expect(told({ ...once, outbox: [] }, failed)).toBeUndefined();
    expect(told({ ...once, outbox: [] }, { ...failed, endedAt: T0 + 5 * HOUR })).toBeDefined();
  });
});
