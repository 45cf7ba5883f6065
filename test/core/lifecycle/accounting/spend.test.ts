import { describe, expect, test } from 'vitest';
import { loadRun } from '../../../../lib/core/config/load';
import type { RunSpec } from '../../../../lib/core/config/run-spec';
import { liveMonthUsd, monthOf } from '../../../../lib/core/lifecycle/accounting/month-spend';
import { runSpendUsd } from '../../../../lib/core/lifecycle/accounting/spend';
import { listCapacityOptions, policyOf } from '../../../../lib/core/lifecycle/capacity-options';
import type { Attempt, RunRecord } from '../../../../lib/core/lifecycle/record';
import { attempt, failedJob, HOUR, job, MINUTE, policy, run, running, seeing, T0 } from '../support/records';

const REGION = 'us-west-2';

function spec(compute: string): RunSpec {
  const { value, issues } = loadRun(`name: x
code: { source: builtin }
model: { architecture: { layers: 2, hiddenSize: 64, attentionHeads: 4, ffnHiddenSize: 128, vocabularySize: 256 } }
training: { sequenceLength: 128, microBatchSize: 1, globalBatchSize: 16, steps: 100 }
compute: ${compute}
data: [{ channel: train, s3: 's3://{dataBucket}/tokens/' }]
`);
  if (!value) throw new Error(JSON.stringify(issues));
  return value;
}
const record = (compute: string): RunRecord => running({ policy: policyOf(spec(compute), REGION) });
const hourly = (compute: string) => listCapacityOptions(spec(compute), REGION)[0]?.usdPerHour ?? Number.NaN;

const P4D = '{ instanceType: ml.p4d.24xlarge, instanceCount: 2 }';
const P5 = '{ instanceType: ml.p5.48xlarge, instanceCount: 2 }';
const EITHER = '{ instanceType: ml.p4d.24xlarge, instanceCount: 2, alternatives: [{ instanceType: ml.p5.48xlarge }] }';
const SPOT = '{ instanceType: ml.p5.48xlarge, instanceCount: 2, capacity: spot }';

const ended = (hours: number, more: Partial<ReturnType<typeof job>> = {}) =>
  failedJob('InternalServerError: x', { endedAt: T0 + hours * HOUR, ...more });
const spent = (before: RunRecord, jobSeen: ReturnType<typeof job>) =>
  run(before, seeing({ job: jobSeen }, [100]), T0 + 24 * HOUR).record.spentUsd;

describe('an attempt that ended is booked at what it is billed', () => {
  test('on demand: by the second of training', () => {
    expect(spent(record(P5), ended(10))).toBeCloseTo(10 * hourly(P5), 6);
    const second = failedJob('InternalServerError: x', { endedAt: T0 + 1400 });
    expect(spent(record(P5), second)).toBeCloseTo((2 * hourly(P5)) / 3600, 6);
  });

  test('spot: the discounted time at the on-demand price', () => {
    expect(spent(record(SPOT), ended(10, { billableSeconds: 3 * 3600 }))).toBeCloseTo(3 * hourly(P5), 6);
  });

  test('an alternative: at the price of the type that the service chose', () => {
    const selected = { instanceType: 'ml.p5.48xlarge', instanceCount: 2 };
    expect(spent(record(EITHER), ended(10, { selected }))).toBeCloseTo(10 * hourly(P5), 6);
    expect(spent(record(EITHER), ended(10))).toBeCloseTo(10 * hourly(P4D), 6);
  });

  test('a training plan: at the price of a plan, where somebody has seen one', () => {
    const plan = `{ instanceType: ml.p4d.24xlarge, instanceCount: 2, trainingPlanArn: 'arn:aws:sagemaker:us-west-2:111122223333:training-plan/p' }`;
    expect(hourly(plan)).toBe(2 * 13);
  });

  test('deleted: until its last heartbeat, or until it was missed', () => {
    type HeartbeatTimes = { attempt: number; step: number; phase: string; writtenAt: number };
    const deleted = (heartbeat?: HeartbeatTimes, last?: HeartbeatTimes) => {
      const absent = seeing({ job: { kind: 'absent' }, heartbeat: last });
      let r: RunRecord = run(record(P5), seeing({ job: job(), heartbeat }), T0 + 9 * HOUR).record;
      r = run(r, absent, T0 + 9 * HOUR + 5 * MINUTE).record;
      return run(r, absent, T0 + 9 * HOUR + 10 * MINUTE).record;
    };
    const heartbeat = { attempt: 1, step: 5, phase: '', writtenAt: T0 + 9 * HOUR };
    expect(deleted().spentUsd).toBeCloseTo((9 + 5 / 60) * hourly(P5), 6);
    const ahead = { ...heartbeat, writtenAt: T0 + 9 * HOUR + 7 * MINUTE };
    expect(deleted(heartbeat, ahead).attempt?.endedAt).toBe(ahead.writtenAt + MINUTE);
    const beaten = deleted(heartbeat, heartbeat);
    expect(deleted(heartbeat).attempt?.endedAt).toBe(T0 + 9 * HOUR + 5 * MINUTE);
    expect(beaten.spentUsd).toBeCloseTo((9 + 1 / 60) * hourly(P5), 6);
    expect(beaten.attempt).toMatchObject({ failureClass: 'deleted', endedAt: T0 + 9 * HOUR + MINUTE });
  });

  test('deleted after its heartbeat had stopped: until the service last said that it was alive', () => {
    const heartbeat = { attempt: 1, step: 5, phase: '', writtenAt: T0 + 9 * HOUR };
    const absent = seeing({ job: { kind: 'absent' }, heartbeat });
    const observations = [
      [2, seeing({ job: job(), heartbeat })],
      [15, seeing({ job: job(), heartbeat })],
      [20, absent],
      [25, absent],
    ] as const;
    const after = observations.reduce(
      (r, [minute, seen]) => run(r, seen, T0 + 9 * HOUR + minute * MINUTE).record,
      record(P5),
    );
    expect(after.attempt).toMatchObject({ failureClass: 'deleted', endedAt: T0 + 9 * HOUR + 15 * MINUTE });
    expect(after.spentUsd).toBeCloseTo(9.25 * hourly(P5), 6);
  });

  test('with a warm pool: until it expires when the run is over', () => {
    const kept = record('{ instanceType: ml.p5.48xlarge, instanceCount: 2, keepAliveSeconds: 1800 }');
    const done = job({ status: 'Completed', secondaryStatus: 'Completed', endedAt: T0 + 10 * HOUR });
    const pool = { isKept: true, retainedSeconds: 0 };
    expect(spent(kept, { ...done, warmPool: pool })).toBeCloseTo(10.5 * hourly(P5), 6);
    expect(spent(kept, { ...done, warmPool: { isKept: false, retainedSeconds: 360 } })).toBeCloseTo(
      10.1 * hourly(P5),
      6,
    );
    expect(spent(kept, done)).toBeCloseTo(10 * hourly(P5), 6);
  });

  test('with a warm pool: until the next attempt takes it over', () => {
    const kept = record('{ instanceType: ml.p5.48xlarge, instanceCount: 2, keepAliveSeconds: 1800 }');
    const warmPool = { isKept: true, retainedSeconds: 0 };
    const end = T0 + 10 * HOUR;
    let r = run(kept, seeing({ job: ended(10, { warmPool }) }, [100]), end).record;
    r = run({ ...r, notBefore: undefined }, seeing({}, [100]), end).record;
    r = run(r, seeing({ create: { kind: 'accepted', arn: 'x' } }, [100]), end + 6 * MINUTE).record;
    expect(r.spentUsd).toBeCloseTo(10.1 * hourly(P5), 6);
    expect(r.warmPool).toBeUndefined();
  });
});

describe('a spot run under a cap', () => {
  const option = { id: 'as-written', instances: [], usage: 'spot' as const, usdPerHour: 100 };
  const capped = (changes: Partial<RunRecord> = {}) =>
    running({ policy: policy({ maxCostUsd: 1000, capacityOptions: [option] }), ...changes });

  test('is not stopped at the on-demand price of its hours', () => {
    expect(run(capped(), seeing({ job: job() }), T0 + 10.6 * HOUR).effects).toEqual([]);
  });

  test('is stopped at the share of the price that its own attempts were billed', () => {
    const learned = run(
      capped(),
      seeing({ job: ended(10, { billableSeconds: 0.3 * 36_000 }) }, [100]),
      T0 + 10 * HOUR,
    ).record;
    expect(learned).toMatchObject({ spentUsd: 300, spotShare: 0.3 });
    const next = { ...learned, attempt: attempt({ number: 2 }) };
    expect(run(next, seeing({ job: job() }, [100]), T0 + 23 * HOUR).effects).toEqual([]);
    const { effects, record } = run(next, seeing({ job: job() }, [100]), T0 + 26 * HOUR);
    expect(effects).toMatchObject([{ do: 'stop' }]);
    expect(record.attempt?.stop?.why).toBe('spend');
  });
});

describe('what a live attempt has cost so far', () => {
  const usd = (own: Partial<Attempt>, at: number) => {
    const record = running({ attempt: attempt(own) });
    const month = monthOf(T0);
    expect(liveMonthUsd(record, month, T0 + at)).toBeCloseTo(runSpendUsd(record, T0 + at) ?? Number.NaN, 6);
    return runSpendUsd(record, T0 + at);
  };
  const heartbeat = (at: number) => ({ step: 5, phase: '', heartbeatAt: T0 + at, movedAt: T0 + at });
  const missed = { absentSince: T0 + HOUR };

  test('grows no more once its job is missing', () => {
    expect(usd(missed, 3 * HOUR)).toBe(100);
    expect(usd({ ...missed, progress: heartbeat(HOUR) }, 3 * HOUR)).toBe(100);
  });

  test('grows while its driver goes on writing although its job is not found', () => {
    const writing = { ...missed, undescribedSince: T0 + HOUR, progress: heartbeat(3 * HOUR - MINUTE) };
    expect(usd(writing, 3 * HOUR)).toBe(300);
  });

  test('ends with a stop that came too late, or with the heartbeat after which others are missing', () => {
    const stop = { why: 'user', at: T0 + HOUR, sentAt: T0 + HOUR, isTooLate: true, text: 'stopped as asked' } as const;
    const over = { undescribedSince: T0, stop, progress: heartbeat(0) };
    expect(usd(over, 3 * HOUR)).toBe(100);
    expect(usd({ ...over, silentHeartbeat: T0 + HOUR / 2 - MINUTE }, 3 * HOUR)).toBe(50);
  });

  test('grows from the create call on while nothing shows when training began', () => {
    const never = { undescribedSince: T0, trainingStartedAt: undefined, status: '', secondaryStatus: '' };
    expect(usd({ ...never, acceptedAt: T0 }, 3 * HOUR)).toBe(300);
    expect(usd({ ...never, acceptedAt: undefined, lastCreateAt: T0 + HOUR }, 3 * HOUR)).toBe(200);
    expect(usd({ ...never, ...missed }, 3 * HOUR)).toBe(100);
  });

  test('counts a job whose create call had no answer once a heartbeat shows that it trains', () => {
    const intent = { phase: 'intent', acceptedAt: undefined, undescribedSince: T0 } as const;
    expect(usd({ ...intent, trainingStartedAt: T0 + HOUR }, 3 * HOUR)).toBe(200);
    expect(usd({ ...intent, trainingStartedAt: undefined }, 3 * HOUR)).toBe(0);
  });
});
