import { describe, expect, test } from 'vitest';
import { isOver, type RunRecord } from '../../../lib/core/lifecycle/record';
import {
  admitted,
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
} from './support/records';

const DAY = 24 * HOUR;
const CAPACITY = 'CapacityError: Unable to provision requested ML compute capacity.';

/** Ends the current attempt as `ends` says, and creates the next one, until the run is over or `most` attempts were made. */
function loop(
  first: RunRecord,
  most: number,
  ends: (attempt: number) => ReturnType<typeof job>,
  steps: (attempt: number) => number[] = () => [],
) {
  let record = first;
  let now = T0;
  for (let n = 1; n <= most && !isOver(record); n++) {
    now += 5 * DAY;
    const ended = { ...ends(n), createdAt: record.attempt?.jobCreatedAt ?? now, endedAt: now };
    record = run(record, seeing({ job: ended }, steps(n)), now).record;
    if (isOver(record)) break;
    record = run({ ...record, notBefore: undefined }, seeing({}, steps(n)), now).record;
    record = run(record, seeing({ create: { kind: 'accepted', arn: 'arn:job' } }, steps(n)), now).record;
  }
  return record;
}

describe('the capacity clock', () => {
  const waited = () =>
    run(
      running({ attempt: attempt({ secondaryStatus: 'Starting', trainingStartedAt: undefined }) }),
      seeing({ job: failedJob(CAPACITY, { trainingStartedAt: undefined }) }),
      T0 + HOUR,
    ).record;

  test('starts with the first failure for lack of capacity', () => {
    expect(waited().budgets).toMatchObject({ capacitySince: T0 + HOUR, capacityTries: 1 });
  });

  test('starts again once training has started: spot that is lost after eight days of training waits again', () => {
    let record: RunRecord = { ...waited(), notBefore: undefined };
    record = run(record, seeing({}), T0 + 2 * HOUR).record;
    record = run(record, seeing({ create: { kind: 'accepted', arn: 'a' } }), T0 + 2 * HOUR).record;
    const times = { createdAt: T0 + 2 * HOUR, trainingStartedAt: T0 + 2 * HOUR };
    for (let day = 1; day <= 8; day++) {
      const heartbeat = { attempt: 2, step: day * 100, phase: '', writtenAt: T0 + day * DAY };
      record = run(record, seeing({ job: job(times), heartbeat }, [day * 100]), T0 + day * DAY).record;
    }
    expect(record.budgets).toMatchObject({ capacitySince: undefined, capacityTries: 0 });
    const end = T0 + 8 * DAY + HOUR;
    const lost = job({ ...times, status: 'Stopped', secondaryStatus: 'MaxWaitTimeExceeded', endedAt: end });
    expect(run(record, seeing({ job: lost }, [800]), end).record.state).toBe('resuming');
  });

  test('starts again although no observation fell into the training between two waits', () => {
    const before = { ...running().budgets, capacitySince: T0 - 30 * DAY, capacityTries: 9 };
    const { record } = run(running({ budgets: before }), seeing({ job: failedJob(CAPACITY) }, [100]), T0 + HOUR);
    expect(record).toMatchObject({ state: 'resuming', budgets: { capacitySince: T0 + HOUR, capacityTries: 1 } });
  });

  test('runs on in the queue: a quota that stays used up ends the run', () => {
    let record: RunRecord = admitted();
    record = run(record, seeing({}), T0).record;
    record = run(
      record,
      seeing({ job: { kind: 'absent' }, create: { kind: 'limit', error: 'ResourceLimitExceeded' } }),
      T0,
    ).record;
    expect(record.state).toBe('queued');
    expect(run(record, seeing({ job: { kind: 'absent' } }), T0 + 6 * DAY).record.state).toBe('queued');
    const after = run(record, seeing({ job: { kind: 'absent' } }), T0 + 7 * DAY).record;
    expect(after).toMatchObject({ state: 'failed', attempt: { phase: 'ended' } });
    expect(after.reason).toContain('waited 168 h for capacity');
  });
});

describe('hand-overs', () => {
  const limit = () => job({ status: 'Stopped', secondaryStatus: 'MaxRuntimeExceeded' });

  test('whose commits nobody sees end within limits.maxAttempts', () => {
    const record = loop(running({ policy: policy({ seesCommits: false, maxAttempts: 20 }) }), 300, limit);
    expect(record).toMatchObject({ state: 'failed', attempt: { number: 20 } });
    expect(record.reason).toContain('limits.maxAttempts (20)');
  });

  test('of a run without checkpoints do not happen: it would begin at step 0 again', () => {
    const record = loop(running({ policy: policy({ seesCommits: false, keepsCheckpoints: false }) }), 300, limit);
    expect(record).toMatchObject({ state: 'failed', attempt: { number: 1 } });
    expect(record.reason).toContain('begin at step 0 again; set checkpoints, or raise limits.maxRuntimeSeconds');
  });

  test('that commit something go on as long as they do', () => {
    const record = loop(running(), 60, limit, (n) => [100 * n]);
    expect(record.attempt?.number).toBe(61);
    expect(isOver(record)).toBe(false);
  });
});

describe('failed attempts', () => {
  test('that committed something are not counted: a run of sixty days goes on', () => {
    const record = loop(
      running(),
      60,
      () => failedJob('InternalServerError: x'),
      (n) => [100 * n],
    );
    expect(isOver(record)).toBe(false);
    expect(record.budgets.failures).toBe(0);
  });

  test('whose own text speaks of capacity are bounded like every crash', () => {
    const record = loop(running(), 100, () => failedJob('AlgorithmError: ExitCode 1 moe.CapacityError'));
    expect(record).toMatchObject({ state: 'failed', attempt: { number: 1, failureClass: 'user-code' } });
  });
});

describe('checkpoints that cannot be read', () => {
  const UNREADABLE =
    'AlgorithmError: {"slipway":1,"class":"checkpoint","code":71,"reason":"step-300: could not be read: EOF"}';
  const steps = [300, 200, 100];

  /** Fails an attempt, and says what the next one resumes from. */
  function next(record: RunRecord, reason: string, now: number) {
    const failed = run(
      record,
      seeing({ job: failedJob(reason, { createdAt: record.attempt?.jobCreatedAt ?? now }) }, steps),
      now,
    ).record;
    const intended = run({ ...failed, notBefore: undefined }, seeing({}, steps), now).record;
    return run(intended, seeing({ create: { kind: 'accepted', arn: 'x' } }, steps), now).record;
  }

  test('are passed over one after the other until one passes', () => {
    let record = next(running({ committed: checkpoint(300) }), 'InternalServerError: x', T0 + HOUR);
    const tried = [record.attempt?.resumeFrom?.step];
    for (let i = 2; i < 4; i++) {
      record = next(record, UNREADABLE, T0 + i * HOUR);
      tried.push(record.attempt?.resumeFrom?.step);
    }
    expect(tried).toEqual([300, 200, 100]);
  });

  test('fails: when none is left', () => {
    const last = running({
      committed: checkpoint(300),
      attempt: attempt({ number: 4, resumeFrom: checkpoint(100), committedAtStart: 100 }),
      badCheckpoints: [checkpoint(300), checkpoint(200)].map((c) => `${c.uri}@1`),
    });
    const { record } = run(last, seeing({ job: failedJob(UNREADABLE) }, steps), T0 + HOUR);
    const after = run({ ...record, notBefore: undefined }, seeing({}, steps), T0 + HOUR);
    expect(after.record.reason).toContain('no complete checkpoint is left');
  });

  const second = () =>
    running({ committed: checkpoint(300), attempt: attempt({ resumeFrom: checkpoint(300), committedAtStart: 300 }) });

  test.each([
    ['says that it could not write', '"step":300,"reason":"step-400: could not be written: 503 SlowDown"'],
    ['met an outage', '"reason":"step-300: could not be read: rank 0: GET step-300/x: S3 answered 503 SlowDown"'],
    ['had made steps from it', '"step":390,"reason":"OSError: [Errno 5]"'],
  ])('are not blamed on the one that was read when the attempt %s', (_, text) => {
    const reason = `AlgorithmError: {"slipway":1,"class":"checkpoint","code":71,${text}}`;
    const { record } = run(second(), seeing({ job: failedJob(reason) }, [300, 200]), T0 + HOUR);
    expect(record.badCheckpoints).toEqual([]);
  });
});

test('a run that waits a day in the queue is told of once, with what it waits for', () => {
  const queued = admitted({
    admitted: false,
    state: 'queued',
    queuedAt: T0,
    reason: 'p5: needs 64, 32 of 64 are free',
  });
  expect(run(queued, seeing(), T0 + 23 * HOUR).notices).toEqual([]);
  const after = run(queued, seeing(), T0 + 25 * HOUR);
  expect(after.notices).toEqual(['queue-wait']);
  expect(after.record.outbox[0]?.text).toContain('has waited 25 h in the queue: p5: needs 64, 32 of 64 are free');
  expect(run({ ...after.record, outbox: [] }, seeing(), T0 + 26 * HOUR + MINUTE).notices).toEqual([]);
});

test('creates that are throttled for minutes alert nobody; ten over an hour do, once', () => {
  const open = attempt({
    phase: 'intent',
    status: '',
    jobArn: undefined,
    jobCreatedAt: undefined,
    acceptedAt: undefined,
  });
  let record: RunRecord = admitted({ attempt: open });
  const alerts: [number, string][] = [];
  for (let minute = 1; minute <= 90; minute++) {
    const out = run(record, seeing({ job: { kind: 'absent' } }), T0 + minute * MINUTE);
    alerts.push(...out.notices.map((alert): [number, string] => [minute, alert]));
    record = { ...out.record, outbox: [] };
  }
  expect(alerts).toEqual([[60, 'create-keeps-failing']]);
});
