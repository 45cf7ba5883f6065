import { describe, expect, test } from 'vitest';
import { jobName } from '../../../../lib/core/contracts/names';
import { isInDoubt } from '../../../../lib/core/lifecycle/phases/launch';
import type { Attempt, RunRecord, WarmPool } from '../../../../lib/core/lifecycle/record';
import { admitted, attempt, HOUR, job, MINUTE, policy, run, running, seeing, T0 } from '../support/records';

const OPEN = {
  phase: 'intent' as const,
  status: '',
  secondaryStatus: '',
  jobArn: undefined,
  jobCreatedAt: undefined,
  acceptedAt: undefined,
  trainingStartedAt: undefined,
};
const intended = (own: Partial<Attempt> = {}, changes: Partial<RunRecord> = {}) =>
  admitted({ state: 'submitting', attempt: attempt({ ...OPEN, ...own }), ...changes });
const ABSENT = { kind: 'absent' } as const;
const absent = (steps: number[] = [], more: object = {}) => seeing({ job: ABSENT, ...more }, steps);

test('job names count to 999 in three digits, and on', () => {
  expect([1, 42, 999, 1000].map((n) => jobName('e', 'r', n))).toEqual([
    'e-r-a001',
    'e-r-a042',
    'e-r-a999',
    'e-r-a1000',
  ]);
});

test.each([
  ['created', 1, undefined, false],
  ['ended', 1, undefined, false],
  ['intent', 1, undefined, true],
  ['intent', 3, 2, true],
  ['intent', 3, 3, false],
] as const)(
  'an attempt that is %s after %i creates, of which %s made nothing: in doubt %s',
  (phase, createTries, unmadeTries, is) => {
    expect(isInDoubt(attempt({ phase, createTries, unmadeTries }))).toBe(is);
  },
);

describe('a new attempt', () => {
  test('begins where the last commit is, and says so', () => {
    const second = admitted({
      state: 'resuming',
      attempt: attempt({ phase: 'ended' }),
      capacityOptionId: 'as-written',
    });
    const { record } = run(second, seeing({}, [70]));
    expect(record).toMatchObject({
      state: 'resuming',
      reason: 'attempt 2 from step 70',
      attempt: { number: 2, committedAtStart: 70, createTries: 1, intentAt: T0 + HOUR, lastCreateAt: T0 + HOUR },
    });
    expect(run(admitted(), seeing()).record).toMatchObject({
      state: 'submitting',
      reason: 'attempt 1 from the beginning',
      attempt: { committedAtStart: null },
    });
  });

  test('of a script whose commits nobody sees begins from what it finds itself, except the first', () => {
    const blind = (changes: Partial<RunRecord>) =>
      run(admitted({ policy: policy({ seesCommits: false }), ...changes }), seeing()).record.reason;
    expect(blind({})).toBe('attempt 1 from the beginning');
    expect(blind({ attempt: attempt({ phase: 'ended' }) })).toBe(
      'attempt 2 from what the script finds of its own checkpoints',
    );
  });

  test('whose least cost would cross the cap is not made', () => {
    const least = (spentUsd: number) =>
      run(admitted({ spentUsd, policy: policy({ maxCostUsd: 100 }) }), seeing()).record.state;
    // 100 USD an hour and a checkpoint every half hour.
    expect(least(50)).toBe('submitting');
    expect(least(50.01)).toBe('failed');
  });
});

test.each([
  ['at attempt 1000, whose job name would be longer than the service takes', 'e'.repeat(12), 'r'.repeat(45), 999],
  ['at attempt 10,000, which no record can have', 'e', 'r', 9999],
])('fails the run %s', (_, environment, runId, number) => {
  const after = (last: number) =>
    run(admitted({ environment, runId, attempt: attempt({ phase: 'ended', number: last }) }), seeing()).record;
  expect(after(number - 1)).toMatchObject({ state: 'resuming', attempt: { number } });
  expect(after(number)).toMatchObject({
    state: 'failed',
    reason: `its jobs have used up their names with attempt ${number}; continue in a new run with checkpoints.startFrom: ${runId}`,
    attempt: { number },
  });
  expect(after(number).outbox[0]?.runbook).toBe('attempts');
});

describe('a job that is not there', () => {
  test('is created again five seconds after the last create, under the same name', () => {
    expect(run(intended(), absent(), T0 + 4999).actions).toEqual([]);
    const { record, effects, events } = run(intended(), absent(), T0 + 5000);
    expect(record.attempt).toMatchObject({ createTries: 2, lastCreateAt: T0 + 5000 });
    expect(effects).toMatchObject([{ do: 'create', attempt: 1 }]);
    expect(events).toEqual(['create-again']);
  });

  test("is a person's to look at after ten creates over an hour", () => {
    const told = (createTries: number, now: number) =>
      run(intended({ createTries, lastCreateAt: T0 }), absent(), now).notices;
    expect(told(9, T0 + HOUR)).toEqual(['create-keeps-failing']);
    expect(told(8, T0 + HOUR)).toEqual([]);
    expect(told(9, T0 + HOUR - 1)).toEqual([]);
  });

  test('delays a stop by ten minutes while a create call may have made it, and not at all otherwise', () => {
    const state = (now: number, own: Partial<Attempt> = {}, changes: Partial<RunRecord> = {}) =>
      run(intended(own, { desired: 'stop', ...changes }), absent(), now).record.state;
    // A record of an earlier version may be in doubt in the queue.
    for (const where of [{ state: 'submitting' }, { state: 'queued', admitted: false }] as const) {
      expect(state(T0 + 10 * MINUTE - 1, {}, where)).toBe(where.state);
      expect(state(T0 + 10 * MINUTE, {}, where)).toBe('stopped');
      expect(state(T0 + 1, { unmadeTries: 1 }, where)).toBe('stopped');
    }
  });

  test('forgets a stop that was meant for a job that never existed, once the run was resumed', () => {
    const stop = { why: 'user', at: T0, sentAt: T0, isTooLate: true, text: 'stopped as asked' } as const;
    const resumed = intended({ stop, undescribedSince: T0, lastCreateAt: T0 }, { state: 'stopping' });
    const { record, effects } = run(resumed, absent(), T0 + HOUR);
    expect(effects).toMatchObject([{ do: 'create' }]);
    expect(record).toMatchObject({ state: 'submitting', attempt: { phase: 'intent', createTries: 2 } });
    expect([record.attempt?.stop, record.attempt?.undescribedSince]).toEqual([undefined, undefined]);
    const adopted = run(record, seeing({ job: job() }), T0 + HOUR + MINUTE).record;
    expect(run(adopted, seeing({ job: job() }), T0 + HOUR + 2 * MINUTE).effects).toEqual([]);
  });

  describe('but has committed', () => {
    const gone = (own: Partial<Attempt>, now: number) => run(intended(own), absent([10]), now).record.attempt;

    test('is asked for once more after a minute, and counts as deleted ten minutes after its create', () => {
      expect(gone({}, T0 + MINUTE)).toMatchObject({ phase: 'intent', absentSince: T0 + MINUTE, createTries: 1 });
      const missed = { absentSince: T0 + 9 * MINUTE };
      expect(gone(missed, T0 + 10 * MINUTE - 1)?.phase).toBe('intent');
      expect(gone(missed, T0 + 10 * MINUTE)).toMatchObject({ phase: 'ended', failureClass: 'deleted' });
      expect(gone({ absentSince: T0 + 10 * MINUTE }, T0 + 11 * MINUTE - 1)?.phase).toBe('intent');
      expect(gone({ absentSince: T0 + 10 * MINUTE }, T0 + 11 * MINUTE)?.phase).toBe('ended');
    });

    test('counts as deleted also when the run is to stop, so that its cost is booked', () => {
      const missed = intended({ absentSince: T0 + 9 * MINUTE }, { desired: 'stop' });
      const ended = run(missed, absent([10]), T0 + 10 * MINUTE).record;
      expect(ended).toMatchObject({ state: 'stopped', attempt: { phase: 'ended', failureClass: 'deleted' } });
      expect(run(missed, absent(), T0 + 10 * MINUTE).record.attempt?.failureClass).toBeUndefined();
    });

    test('is waited for while nobody can see whether it did', () => {
      const blind = seeing({ job: ABSENT, checkpoints: { kind: 'unreadable', error: '503' } });
      expect(run(intended(), blind, T0 + HOUR).actions).toEqual([]);
    });
  });
});

describe('a job that is not there but left a heartbeat', () => {
  const heartbeat = (number: number) => ({ attempt: number, step: null, phase: 'start', writtenAt: T0 });
  const missed = intended({ absentSince: T0 + 9 * MINUTE });

  test('is not created again: it counts as deleted', () => {
    const first = run(intended(), absent([], { heartbeat: heartbeat(1) }), T0 + MINUTE);
    expect(first.effects).toEqual([]);
    expect(first.record.attempt).toMatchObject({ phase: 'intent', absentSince: T0 + MINUTE });
    expect(run(missed, absent([], { heartbeat: heartbeat(1) }), T0 + 10 * MINUTE).record.attempt).toMatchObject({
      phase: 'ended',
      failureClass: 'deleted',
    });
  });

  test('of another attempt is created again', () => {
    expect(run(missed, absent([], { heartbeat: heartbeat(2) }), T0 + 10 * MINUTE).events).toEqual(['create-again']);
  });

  test('shows that it ran where commits cannot be observed', () => {
    const blind = { policy: policy({ seesCommits: false }) };
    const seen = absent([], { heartbeat: heartbeat(1) });
    expect(run(intended({}, blind), seen, T0 + MINUTE).effects).toEqual([]);
    expect(run(intended({}, blind), absent(), T0 + MINUTE).events).toEqual(['create-again']);
  });
});

describe('the answer to a create', () => {
  const answered = (create: object, more: object = {}, own: Partial<Attempt> = {}, changes: Partial<RunRecord> = {}) =>
    run(intended(own, changes), seeing({ create: create as never, ...more }), T0 + MINUTE);

  test('that it was accepted makes the job; of a later attempt the run is resuming', () => {
    const accepted = { kind: 'accepted', arn: 'arn:new' };
    expect(answered(accepted).record).toMatchObject({
      state: 'pending',
      attempt: { phase: 'created', jobArn: 'arn:new', acceptedAt: T0 + MINUTE },
    });
    expect(answered(accepted, {}, { number: 2 }).record.state).toBe('resuming');
  });

  test('makes the new job take over the warm pool, which is billed until then', () => {
    const warmPool = {
      attempt: { number: 1, jobName: 'research-pretrain-a001' },
      usdPerHour: 60,
      since: T0,
      until: T0 + HOUR,
    };
    const { record } = answered({ kind: 'accepted', arn: 'a' }, {}, {}, { warmPool, spentUsd: 5 });
    expect(record).toMatchObject({ spentUsd: 6, warmPool: undefined });
    expect(answered({ kind: 'accepted', arn: 'a' }, {}, {}, { spentUsd: 5 }).record.spentUsd).toBe(5);
  });

  test('keeps the pool open, because the job may have got another one', () => {
    const { number, jobName } = attempt();
    const warmPool = { attempt: { number, jobName }, usdPerHour: 60, since: T0, until: T0 + HOUR };
    const accepted = { kind: 'accepted', arn: 'a' } as const;
    const taken = (pool: Partial<WarmPool> = {}, changes: Partial<RunRecord> = {}) =>
      answered(accepted, {}, {}, { warmPool: { ...warmPool, ...pool }, spentUsd: 5, ...changes }).record.earlierPools;
    const open = { ...warmPool, bookedUntil: T0 + MINUTE };
    expect(taken()).toEqual([open]);
    expect(taken({}, { earlierPools: [open] })).toEqual([open, open]);
    expect(taken({ until: T0 + 1000 })).toEqual([{ ...open, until: T0 + 1000, bookedUntil: T0 + 1000 }]);
    expect(taken({ since: T0 + HOUR, until: T0 + 2 * HOUR })?.[0]?.bookedUntil).toBe(T0 + HOUR);
    expect(taken({ isFinal: true })).toBeUndefined();
  });

  test('books the pool until the job was created, also where that is seen later', () => {
    const warmPool = {
      attempt: { number: 1, jobName: 'research-pretrain-a001' },
      usdPerHour: 60,
      since: T0,
      until: T0 + HOUR,
    };
    const found = seeing({ job: job({ createdAt: T0 + MINUTE, identity: 'ours' }) });
    const { record } = run(intended({}, { warmPool, spentUsd: 5 }), found, T0 + 30 * MINUTE);
    expect(record).toMatchObject({ attempt: { phase: 'created' }, spentUsd: 6, warmPool: undefined });
  });

  test.each(['throttled', 'not-attempted'])('%s pauses two seconds, once', (kind) => {
    const outcome = { kind, error: 'x' };
    expect(answered(outcome).record.notBefore).toBe(T0 + MINUTE + 2000);
    expect(answered(outcome, {}, {}, { notBefore: T0 + 2 * MINUTE }).actions).toEqual([]);
  });

  test.each(['limit', 'refused'])('%s proves nothing while the job may be there', (kind) => {
    const create = { kind, error: 'no', failureClass: 'access' };
    expect(answered(create).actions).toEqual([]);
    const unseen = answered(create, { job: { kind: 'unreadable', error: '503' } });
    expect(unseen.record).toMatchObject({ state: 'submitting', attempt: { phase: 'intent' } });
    expect(answered(create, { job: ABSENT }).record.state).toBe(kind === 'limit' ? 'queued' : 'failed');
  });

  test('that it was refused ends the attempt with the run, under the runbook of its class', () => {
    const { record } = answered({ kind: 'refused', error: 'no', failureClass: 'access' }, { job: ABSENT });
    expect(record).toMatchObject({
      reason: 'create was refused: no',
      attempt: { phase: 'ended', endedAt: T0 + MINUTE },
    });
    expect(record.outbox[0]?.runbook).toBe('access');
  });

  test.each(['doubtful', 'exists'])('%s leaves it to the next Describe', (kind) => {
    expect(answered({ kind, error: 'x' }, { job: ABSENT }).actions).toEqual([]);
  });

  test('that the quota is used up moves on only where no create can have made a job', () => {
    const option = (id: string) => ({ id, instances: [], usage: 'training' as const, usdPerHour: 1 });
    const capacityOptions = { policy: policy({ capacityOptions: [option('as-written'), option('as-written@1')] }) };
    const limited = (own: Partial<Attempt>) =>
      answered({ kind: 'limit', error: 'used up' }, { job: ABSENT }, own, capacityOptions).record;
    expect(limited({})).toMatchObject({
      state: 'queued',
      admitted: false,
      capacityOptionId: 'as-written@1',
      budgets: { capacityTries: 1 },
      attempt: { capacityOptionId: 'as-written@1', unmadeTries: 1 },
    });
    expect(limited({ createTries: 3, unmadeTries: 2 }).attempt).toMatchObject({
      capacityOptionId: 'as-written@1',
      unmadeTries: 3,
    });
    expect(limited({ createTries: 3, unmadeTries: 1 })).toMatchObject({
      state: 'submitting',
      admitted: true,
      notBefore: T0 + 10 * MINUTE,
      attempt: { capacityOptionId: 'as-written', unmadeTries: 1 },
    });
    expect(limited({}).notBefore).toBeGreaterThanOrEqual(T0 + MINUTE + 225_000);
  });
});

describe('a job that was there and is not', () => {
  const observe = (own: Partial<Attempt>, now: number) =>
    run(running({ attempt: attempt(own) }), absent(), now).record.attempt;

  test('may not be shown yet for ten minutes, where it was never seen', () => {
    const fresh = { status: '', acceptedAt: T0 };
    expect(observe(fresh, T0 + 10 * MINUTE - 1)?.absentSince).toBeUndefined();
    expect(observe(fresh, T0 + 10 * MINUTE)?.absentSince).toBe(T0 + 10 * MINUTE);
    expect(
      observe({ status: '', acceptedAt: undefined, intentAt: T0 }, T0 + 10 * MINUTE - 1)?.absentSince,
    ).toBeUndefined();
    expect(observe({ acceptedAt: T0 }, T0 + 1)?.absentSince).toBe(T0 + 1);
  });

  test('is deleted when an observation a minute later misses it as well', () => {
    expect(observe({ absentSince: T0 }, T0 + MINUTE - 1)?.phase).toBe('created');
    expect(observe({ absentSince: T0 }, T0 + MINUTE)).toMatchObject({ phase: 'ended', failureClass: 'deleted' });
  });
});

test('two answers of the service about one job may differ by a second in its creation', () => {
  const stateAt = (createdAt: number) => run(running(), seeing({ job: job({ createdAt }) })).record.state;
  expect([T0 - 1000, T0 + 1000].map(stateAt)).toEqual(['running', 'running']);
  expect([T0 - 1001, T0 + 1001].map(stateAt)).toEqual(['failed', 'failed']);
});

test('uploads have an hour to be confirmed', () => {
  const state = (now: number) => run(admitted({ confirmed: false }), seeing({}, []), now).record.state;
  expect([T0 + HOUR - 1, T0 + HOUR].map(state)).toEqual(['submitting', 'failed']);
});

test('a run that ends books the warm pool of its last job until it expires', () => {
  const warmPool = {
    attempt: { number: 1, jobName: 'research-pretrain-a001' },
    usdPerHour: 60,
    since: T0,
    until: T0 + HOUR,
  };
  const stopped = run(admitted({ desired: 'stop', warmPool, spentUsd: 1 }), seeing(), T0 + MINUTE).record;
  expect(stopped).toMatchObject({ state: 'stopped', spentUsd: 61, warmPool: undefined });
});
