import { describe, expect, test } from 'vitest';
import type { TimelineEvent } from '../../../lib/core/lifecycle/action';
import { classify } from '../../../lib/core/lifecycle/classify';
import { decide } from '../../../lib/core/lifecycle/decide';
import { askStop } from '../../../lib/core/lifecycle/intent';
import { ledger } from '../../../lib/core/lifecycle/ledger';
import type { Observed } from '../../../lib/core/lifecycle/observed';
import type { RunRecord } from '../../../lib/core/lifecycle/record';
import { admitted, attempt, failedJob, HOUR, job, MINUTE, policy, run, running, seeing, T0 } from './support/records';

const heartbeat = (step: number, writtenAt: number) => ({ attempt: 1, step, phase: '', writtenAt });

/** Looks at a run every five minutes; gives back the minutes of stops, and all alerts. */
function watch(first: RunRecord, observe: (minute: number) => Observed, minutes: number, from = T0 + HOUR) {
  let record = first;
  const stops: number[] = [];
  const alerts: string[] = [];
  for (let minute = 5; minute <= minutes; minute += 5) {
    const out = run(record, observe(minute), from + minute * MINUTE);
    if (out.effects.some((e) => e.do === 'stop')) stops.push(minute);
    alerts.push(...out.notices);
    record = { ...out.record, outbox: [] };
  }
  return { record, stops, alerts };
}

describe('a heartbeat that cannot be read', () => {
  const seen = () => run(running(), seeing({ job: job(), heartbeat: heartbeat(10, T0 + HOUR) }), T0 + HOUR).record;

  test.each([
    ['because of an error', { heartbeatError: 'AccessDenied: kms:Decrypt' }],
    ['because it is gone', {}],
  ])('%s stops nothing and is told of once', (_, unread) => {
    const { stops, alerts } = watch(seen(), () => seeing({ job: job(), ...unread }), 24 * 60);
    expect(stops).toEqual([]);
    expect(alerts).toEqual(['heartbeat-unreadable']);
  });

  test('for a few minutes is not told of', () => {
    const { alerts } = watch(seen(), () => seeing({ job: job(), heartbeatError: 'SlowDown' }), 15);
    expect(alerts).toEqual([]);
  });

  test('counts again from its first reading on: what was silent before the error is stopped after it', () => {
    const silent = (minute: number) =>
      minute < 60
        ? seeing({ job: job(), heartbeatError: '503' })
        : seeing({ job: job(), heartbeat: heartbeat(10, T0 + HOUR) });
    expect(watch(seen(), silent, 70).stops[0]).toBe(65);
  });
});

test('objects that the run writes are a sign of life when its heartbeat is old', () => {
  const silent = (newestWriteAt: number) => (minute: number) =>
    seeing({
      job: job(),
      heartbeat: heartbeat(10, T0 + HOUR),
      checkpoints: { kind: 'listed', committed: [], torn: [], newestWriteAt: newestWriteAt + minute * MINUTE },
    });
  expect(watch(running(), silent(T0 + HOUR - MINUTE), 120).stops).toEqual([]);
  expect(watch(running(), silent(T0 - 10 * HOUR), 120).stops).not.toEqual([]);
});

describe('a spot job that trains again after an interruption', () => {
  const waiting = () => {
    const first = run(running(), seeing({ job: job(), heartbeat: heartbeat(10, T0 + HOUR) }), T0 + HOUR).record;
    const status = (secondaryStatus: string, at: number, record: RunRecord) =>
      run(record, seeing({ job: job({ secondaryStatus }), heartbeat: heartbeat(10, T0 + HOUR) }), at).record;
    return status('Starting', T0 + 2 * HOUR, status('Interrupted', T0 + 61 * MINUTE, first));
  };
  const back = T0 + 3 * HOUR;

  test.each([
    ['by the service', { trainingStartedAt: T0, trainingSince: back }],
    ['by its change of status', { trainingStartedAt: T0 }],
  ])('gets its start-up time again, as told %s', (_, times) => {
    const again = () => seeing({ job: job(times), heartbeat: heartbeat(10, T0 + HOUR) });
    expect(watch(waiting(), again, 30, back - 5 * MINUTE).stops).toEqual([]);
  });

  test('is a hang when its driver stays silent for longer than that', () => {
    const again = () => seeing({ job: job({ trainingSince: back }), heartbeat: heartbeat(10, T0 + HOUR) });
    expect(watch(waiting(), again, 120, back).stops[0]).toBe(70);
  });
});

test('a job without a driver of ours (toolkit contract, network isolation) raises no alert about heartbeats', () => {
  const blind = (writesHeartbeats?: boolean) =>
    running({ policy: policy({ seesSteps: false, seesCommits: false, writesHeartbeats }) });
  expect(watch(blind(), () => seeing({ job: job() }), 330, T0).alerts).toEqual([]);
  expect(watch(blind(false), () => seeing({ job: job() }), 330, T0).alerts).toEqual([]);
  expect(watch(blind(true), () => seeing({ job: job() }), 330, T0).alerts).toEqual(['hang-suspected']);
});

test('a job that never leaves Stopping is told of once', () => {
  const asked = askStop(running(), 'asked', T0)?.record ?? running();
  const stopping = () => seeing({ job: job({ status: 'Stopping', secondaryStatus: 'Stopping' }) });
  expect(watch(asked, stopping, 24 * 60, T0).alerts).toEqual(['stop-takes-long']);
});

describe('a job that was never trained and is Stopped', () => {
  const pending = () => attempt({ secondaryStatus: 'Pending', trainingStartedAt: undefined });
  const stopped = (secondaryStatus: string, endedAt: number) =>
    job({ status: 'Stopped', secondaryStatus, trainingStartedAt: undefined, endedAt });

  test.each(['Stopped', 'MaxPendingTimeExceeded'])(
    'after its pending limit (%s) found no capacity',
    (secondaryStatus) => {
      const record = running({ state: 'pending', attempt: pending(), policy: policy({ capacityBudgetSeconds: 7200 }) });
      const after = run(record, seeing({ job: stopped(secondaryStatus, T0 + 2 * HOUR) }), T0 + 2 * HOUR).record;
      expect(after).toMatchObject({ state: 'resuming', desired: 'run', attempt: { failureClass: 'capacity' } });
    },
  );

  test('before its pending limit was stopped by somebody', () => {
    const verdict = classify(stopped('Stopped', T0 + HOUR), pending(), 7200);
    expect(verdict.failureClass).toBe('outside-stop');
  });

  test('after its pending limit by us was stopped by us', () => {
    const ours = { ...pending(), stop: { why: 'user' as const, at: T0, text: 'asked' } };
    expect(classify(stopped('Stopped', T0 + 2 * HOUR), ours, 7200).failureClass).toBe('planned');
  });
});

test.each([
  'AlgorithmError: {"slipway":1,"class":"user","code":1,"reason":"ValueError: insufficient capacity of expert 3"}, exit code: 1',
  'AlgorithmError: ExecuteUserScriptError: ExitCode 1 moe.CapacityError: token dropped',
  'AlgorithmError: , exit code: 1 CapacityError: Unable to provision requested ML compute capacity',
  'AlgorithmError: ExecuteUserScriptError: ExitCode 1 RuntimeError: hardware failure simulated',
])('words of the container are not those of the service: %s', (reason) => {
  expect(classify(failedJob(reason), attempt()).failureClass).toBe('user-code');
});

test.each([
  'CapacityError: Unable to provision requested ML compute capacity. Please retry using a different ML instance type.',
  'ClientError: Unable to provision requested ML compute capacity.',
  'InsufficientCapacityError: training plan',
  'Unable to provision requested ML compute capacity',
])('no capacity, in the words of the service: %s', (reason) => {
  expect(classify(failedJob(reason), attempt()).failureClass).toBe('capacity');
});

describe('a name whose job is not known', () => {
  const intent = () =>
    admitted({
      attempt: attempt({
        phase: 'intent',
        status: '',
        secondaryStatus: '',
        jobArn: undefined,
        acceptedAt: undefined,
        jobCreatedAt: undefined,
        trainingStartedAt: undefined,
      }),
    });
  const absent = () => seeing({ job: { kind: 'absent' } }, [10]);

  test('although something was committed, starts no second job after one observation', () => {
    const first = run(intent(), absent(), T0 + 10_000).record;
    expect(run(first, absent(), T0 + 20_000).effects).toEqual([]);
    expect(run(first, absent(), T0 + 5 * MINUTE).record.attempt?.phase).toBe('intent');
  });

  test('counts as deleted after two observations, long after the last create', () => {
    const first = run(intent(), absent(), T0 + 5 * MINUTE).record;
    const second = run(first, absent(), T0 + 11 * MINUTE).record;
    expect(second.attempt).toMatchObject({ phase: 'ended', failureClass: 'deleted' });
  });
});

test('steps that a commit holds are kept, although it is first seen with the end of its attempt', () => {
  const lines: TimelineEvent[] = [{ at: T0, what: 'run-confirmed', text: '', evidence: {} }];
  let record: RunRecord = admitted();
  const observe = (observed: Observed, now: number) => {
    for (const action of decide(record, observed, now)) {
      if (action.do !== 'save') continue;
      lines.push(...action.events);
      record = action.record;
    }
  };
  observe(seeing({}), T0);
  observe(seeing({ create: { kind: 'accepted', arn: 'x' } }), T0);
  observe(seeing({ job: job(), heartbeat: heartbeat(1, T0) }), T0 + MINUTE);
  observe(seeing({ job: job(), heartbeat: heartbeat(2, T0 + 5 * MINUTE) }), T0 + 5 * MINUTE);
  const end = T0 + 10 * HOUR;
  const handOver = failedJob('AlgorithmError: {"slipway":1,"class":"hand-over","code":76}', { endedAt: end });
  observe(seeing({ job: handOver, heartbeat: heartbeat(5000, end) }, [5000]), end);
  expect(ledger(lines, end + MINUTE).seconds.lost).toBeLessThan(600);
});
