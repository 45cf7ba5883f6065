import { describe, expect, test } from 'vitest';
import { isDueForLook } from '../../../lib/lifecycle/health/look';
import type { JobObservation } from '../../../lib/lifecycle/observed';
import { hasOpenPool } from '../../../lib/lifecycle/phases/settle-pool';
import type { RunRecord } from '../../../lib/lifecycle/record';
import { admitted, attempt, HOUR, job, MINUTE, run, running, seeing, T0 } from '../support/records';

/** Kept from the first hour on, booked for an hour at 60 USD. */
const POOL = { usdPerHour: 60, since: T0 + HOUR, until: T0 + 2 * HOUR };
const DUE = POOL.until + 3 * MINUTE;
const over = (changes: Partial<RunRecord> = {}): RunRecord =>
  running({ state: 'completed', attempt: attempt({ phase: 'ended' }), leftPool: POOL, spentUsd: 160, ...changes });
const ended = (seconds: number): JobObservation =>
  job({ status: 'Completed', warmPool: { isKept: false, retainedSeconds: seconds } });
const settled = (lastJob: JobObservation | undefined, now = DUE, record = over()) =>
  run(record, seeing({ ...(lastJob && { lastJob }) }), now);

describe('the warm pool of a run that is over', () => {
  test('is asked about three minutes after it should have ended, and at no tick before', () => {
    expect(isDueForLook(over(), DUE - 1)).toBe(false);
    expect(isDueForLook(over(), DUE)).toBe(true);
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
    expect(hasOpenPool(record)).toBe(false);
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
    expect(isDueForLook(over({ outbox: [notice as never] }), T0 + HOUR)).toBe(true);
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
