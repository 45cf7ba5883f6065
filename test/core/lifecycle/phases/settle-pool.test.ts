import { describe, expect, test } from 'vitest';
import { isDueForObservation } from '../../../../lib/core/lifecycle/health/observation-schedule';
import type { JobObservation, Observed } from '../../../../lib/core/lifecycle/observed';
import { isPoolDue, settleEarlierPools } from '../../../../lib/core/lifecycle/phases/settle-pool';
import type { RunRecord } from '../../../../lib/core/lifecycle/record';
import { admitted, attempt, HOUR, job, MINUTE, policy, run, running, seeing, T0 } from '../support/records';

/** Kept from the first hour on, booked for an hour at 60 USD. */
const POOL = {
  attempt: { number: 1, jobName: 'research-pretrain-a001' },
  usdPerHour: 60,
  since: T0 + HOUR,
  until: T0 + 2 * HOUR,
};
const DUE = POOL.until + 3 * MINUTE;
const over = (changes: Partial<RunRecord> = {}): RunRecord =>
  running({ state: 'completed', attempt: attempt({ phase: 'ended' }), leftPool: POOL, spentUsd: 160, ...changes });
const ended = (seconds: number): JobObservation =>
  job({ status: 'Completed', warmPool: { isKept: false, retainedSeconds: seconds } });
const settled = (lastJob: JobObservation | undefined, now = DUE, record = over()) =>
  run(record, seeing({ ...(lastJob && { lastJob }) }), now);

describe('the warm pool of a run that is over', () => {
  test('is asked about three minutes after it should have ended, and at no tick before', () => {
    expect(isDueForObservation(over(), DUE - 1)).toBe(false);
    expect(isDueForObservation(over(), DUE)).toBe(true);
    expect(settled(ended(600), DUE - 1).actions).toEqual([]);
    expect(settled(undefined).actions).toEqual([]);
  });

  test('costs what the service says that it was kept, and the timeline says so', () => {
    const { record, events, actions } = settled(ended(600));
    expect(record).toMatchObject({ spentUsd: 110, leftPool: { ...POOL, until: POOL.since + 600_000, isFinal: true } });
    expect(events).toEqual(['warm-pool-ended']);
    expect(actions[0]).toMatchObject({
      events: [{ text: expect.stringMatching(/^the warm pool of .*-a001 had ended after 600 s$/) }],
    });
    expect(isPoolDue(record, DUE + HOUR)).toBe(false);
    expect(settled(ended(600), DUE + HOUR, record).actions).toEqual([]);
  });

  test('that lasted as booked is final without a line in the timeline', () => {
    const { record, events } = settled(ended(3600));
    expect([record.spentUsd, record.leftPool?.isFinal, events]).toEqual([160, true, []]);
  });

  test.each<[string, JobObservation]>([
    ['was deleted', { kind: 'absent' }],
    [
      'has its name from somebody else now',
      job({ identity: 'foreign', warmPool: { isKept: false, retainedSeconds: 1 } }),
    ],
    ['says nothing of a pool', job({ status: 'Completed' })],
  ])('stays booked where the job %s', (_what, lastJob) => {
    const { record, events } = settled(lastJob);
    expect([record.spentUsd, record.leftPool?.until, record.leftPool?.isFinal, events]).toEqual([
      160,
      POOL.until,
      true,
      [],
    ]);
  });

  test.each<[string, JobObservation]>([
    ['cannot be described', { kind: 'unreadable', error: 'Throttling' }],
    ['still has it', job({ status: 'Completed', warmPool: { isKept: true, retainedSeconds: 0 } })],
    ['cannot be told from one of others', job({ identity: 'unread', warmPool: { isKept: false, retainedSeconds: 1 } })],
  ])('is asked about again at the next tick where the job %s, for a day', (_what, lastJob) => {
    expect(settled(lastJob).actions).toEqual([]);
    const { record } = settled(lastJob, POOL.until + 24 * HOUR);
    expect([record.spentUsd, record.leftPool?.isFinal]).toEqual([160, true]);
  });

  test('does not keep a notice from being published', () => {
    const notice = { id: 'a/1', alert: 'a', about: '1', text: 't', at: T0 };
    expect(isDueForObservation(over({ outbox: [notice as never] }), T0 + HOUR)).toBe(true);
  });
});

describe('the warm pool of the last attempt', () => {
  const waiting = (lastJob?: JobObservation) =>
    run(
      admitted({ attempt: attempt({ phase: 'ended' }), warmPool: POOL, spentUsd: 100 }),
      seeing({ ...(lastJob && { lastJob }) }),
      T0 + 2 * HOUR,
    ).record;

  test('is booked until another job has taken it over', () => {
    expect(waiting(ended(600)).warmPool).toEqual({ ...POOL, until: POOL.since + 600_000, isFinal: true });
  });

  test('stays as it is while it is kept, or where nobody knows', () => {
    expect(waiting(job({ warmPool: { isKept: true, retainedSeconds: 0 } })).warmPool).toEqual(POOL);
    expect(waiting({ kind: 'absent' }).warmPool).toEqual(POOL);
    expect(waiting().warmPool).toEqual(POOL);
  });
});

describe('the warm pool of an earlier attempt', () => {
  const earlier = (number = 1) => ({ ...POOL, attempt: attempt({ number }), bookedUntil: POOL.since + 10 * MINUTE });
  const next = (earlierJobs: Observed['earlierJobs'], now = DUE) =>
    run(
      admitted({ attempt: attempt({ number: 2, phase: 'ended' }), earlierPools: [earlier()], spentUsd: 110 }),
      seeing({ earlierJobs }),
      now,
    );

  test('is booked as the service says at the next attempt, and the timeline says so', () => {
    const { record, events, actions } = next({ 1: ended(3600) });
    expect([record.spentUsd, record.earlierPools, record.attempt?.number]).toEqual([160, undefined, 3]);
    expect(events).toEqual(['warm-pool-ended', 'attempt-intended']);
    expect(actions[0]).toMatchObject({
      events: [{ text: expect.stringMatching(/-a001 had ended after 3600 s$/) }, expect.anything()],
    });
  });

  test('that the next job took over costs what was booked', () => {
    const { record, events } = next({ 1: ended(600) });
    expect([record.spentUsd, record.earlierPools, events]).toEqual([110, undefined, ['attempt-intended']]);
  });

  test('of unknown price leaves the spend unknown', () => {
    const record = admitted({ earlierPools: [{ ...earlier(), usdPerHour: null }], spentUsd: null });
    const { changes } = settleEarlierPools(record, seeing({ earlierJobs: { 1: ended(600) } }), DUE);
    expect(changes).toEqual({ spentUsd: null, earlierPools: undefined });
  });

  test.each<[string, JobObservation | undefined]>([
    ['cannot be described', { kind: 'unreadable', error: 'Throttling' }],
    ['still has it', job({ status: 'Completed', warmPool: { isKept: true, retainedSeconds: 0 } })],
    ['was not asked about', undefined],
  ])('is asked about again where the job %s, for a day', (_what, observed) => {
    const jobs = observed && { 1: observed };
    expect(next(jobs).record).toMatchObject({ spentUsd: 110, earlierPools: [earlier()] });
    const late = next(jobs, POOL.until + 24 * HOUR).record;
    expect(late.earlierPools).toEqual(observed ? undefined : [earlier()]);
    // A pool that is still kept was kept until its expected end as well.
    expect(late.spentUsd).toBe(observed?.kind === 'present' ? 160 : 110);
  });

  test('is booked before the next attempt is checked against the spend cap', () => {
    const capped = (retained: number) => {
      const record = admitted({
        attempt: attempt({ number: 2, phase: 'ended' }),
        earlierPools: [earlier()],
        spentUsd: 110,
        policy: policy({ maxCostUsd: 162 }),
      });
      return run(record, seeing({ earlierJobs: { 1: ended(retained) } }), DUE).record;
    };
    expect([capped(3600).state, capped(3600).spentUsd]).toEqual(['failed', 160]);
    expect([capped(600).state, capped(600).spentUsd]).toEqual(['resuming', 110]);
  });

  test('is booked also while the next attempt waits', () => {
    const waiting = (changes: Partial<RunRecord>, observed: Partial<Observed> = {}) =>
      run(
        admitted({
          attempt: attempt({ number: 2, phase: 'ended' }),
          earlierPools: [earlier()],
          spentUsd: 110,
          ...changes,
        }),
        seeing({ earlierJobs: { 1: ended(3600) }, ...observed }),
        DUE,
      ).record;
    expect(waiting({ notBefore: DUE + 1 })).toMatchObject({ spentUsd: 160, earlierPools: undefined });
    const unread = { checkpoints: { kind: 'unreadable', error: 'SlowDown' } } as const;
    expect(waiting({}, unread)).toMatchObject({ spentUsd: 160, earlierPools: undefined });
  });

  test('stays as booked where the job was deleted', () => {
    const { record } = next({ 1: { kind: 'absent' } });
    expect([record.spentUsd, record.earlierPools]).toEqual([110, undefined]);
  });

  test('keeps a run that is over open until all of its pools have ended', () => {
    const later = { ...earlier(2), until: POOL.until + HOUR };
    const record = over({ earlierPools: [earlier(), later] });
    expect(isDueForObservation(record, DUE + HOUR - 1)).toBe(false);
    expect(isDueForObservation(record, DUE + HOUR)).toBe(true);
    const jobs = { lastJob: ended(600), earlierJobs: { 1: ended(3600), 2: ended(600) } };
    const whole = run(record, seeing(jobs), DUE + HOUR).record;
    // Fifty dollars less for the last pool, fifty more for the first, and as booked for the second.
    expect([whole.spentUsd, whole.earlierPools, isPoolDue(whole, DUE + 2 * HOUR)]).toEqual([160, undefined, false]);
    const part = run(record, seeing({ ...jobs, earlierJobs: { 1: ended(3600) } }), DUE + HOUR).record;
    expect([part.spentUsd, part.earlierPools, isPoolDue(part, DUE + 2 * HOUR)]).toEqual([160, [later], true]);
  });
});
