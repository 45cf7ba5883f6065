// The end that status predicts, on figures worked out by hand; against the ends of simulated runs: test/long/foretold-ends.test.ts.
import { describe, expect, test } from 'vitest';
import { countAt, outlook } from '../../../../lib/core/lifecycle/accounting/outlook';
import { CAUSES, type Ledger } from '../../../../lib/core/lifecycle/ledger';
import type { Attempt, RunRecord } from '../../../../lib/core/lifecycle/record';
import { attempt, checkpoint, HOUR, policy, running, T0 } from '../support/records';

const ledgerOf = (hours: Partial<Ledger['seconds']>): Ledger => {
  const none = Object.fromEntries(CAUSES.map((cause) => [cause, 0])) as Ledger['seconds'];
  const seconds = Object.fromEntries(Object.entries(hours).map(([cause, h]) => [cause, h * 3600]));
  return { seconds: { ...none, ...seconds }, totalSeconds: 0, goodput: null };
};
/** 100 of 1,000 steps made, which took an hour: nine more are left. */
const record = (own: Partial<Attempt> = {}, changes: Partial<RunRecord> = {}) =>
  running({
    policy: policy({ totalSteps: 1000 }),
    attempt: attempt({ progress: { step: 100, phase: '', heartbeatAt: T0, movedAt: T0 }, ...own }),
    ...changes,
  });
const seen = (hours: Partial<Ledger['seconds']> = { step: 1 }, interruptions = 0) => ({
  ledger: ledgerOf(hours),
  interruptions,
  now: T0,
});
const hoursOf = (of: RunRecord, observed = seen()) => {
  const { etaAt, etaInterval80 } = outlook(of, observed);
  return [etaAt, ...(etaInterval80 ?? [])].map((at) => ((at ?? Number.NaN) - T0) / HOUR);
};

describe('a run that was never interrupted', () => {
  test('needs the time of the steps that are left, and the failures that hosts of others had', () => {
    // Two hosts fail 0.013 times a day; what is believed of that weighs 55.4 h, and one hour without a failure was seen.
    const failures = (0.03 / (55.385 + 1)) * 9;
    expect(hoursOf(record())[0]).toBeCloseTo(9 + failures * 0.25, 4);
  });

  test('ends four times of five within the error of its speed, which gets smaller with its steps', () => {
    const [, early = 0, late = 0] = hoursOf(record());
    // 1 % and 30 % of one of 100 steps: 4 %, of which 1.28 are 80 %; and an observation five minutes before and after.
    expect(early).toBeCloseTo(9 * (1 - 1.2816 * 0.04) - 1 / 12, 3);
    expect(late).toBeCloseTo(9 * (1 + 1.2816 * 0.04) + 1 / 12, 3);
    const [, first = 0, last = 0] = hoursOf(
      record({ progress: { step: 1, phase: '', heartbeatAt: T0, movedAt: T0 } }),
      seen({ step: 0.01 }),
    );
    expect(last - first).toBeGreaterThan(5);
  });

  test('counts saves and evaluations with its steps, and not what was lost', () => {
    expect(hoursOf(record(), seen({ step: 1, save: 0.5, eval: 0.5 }))[0]).toBeCloseTo(18, 1);
    expect(hoursOf(record(), seen({ step: 1, lost: 5, hang: 5, gap: 5 }))[0]).toBeCloseTo(9, 1);
  });

  test('fails the more often the more hosts it has', () => {
    const option = {
      ...policy().capacityOptions[0],
      instances: [{ instanceType: 'ml.p5.48xlarge', instanceCount: 200 }],
    };
    const many = record({}, { policy: policy({ totalSteps: 1000, capacityOptions: [option as never] }) });
    // 1.3 failures a day among 200 hosts: the belief weighs 0.554 h, and nine hours at 0.0193 an hour cost 0.25 h each.
    expect(hoursOf(many)[0]).toBeCloseTo(9 + (0.03 / 1.554) * 9 * 0.25, 3);
  });

  test('pays for each failure what its own start took, and half of it while it starts', () => {
    const observed = seen({ step: 1, pending: 1, startup: 0.5, warmup: 0.5 });
    const failures = (0.03 / 56.385) * 9;
    expect(hoursOf(record(), observed)[0]).toBeCloseTo(9 + failures * 2.25, 3);
    const starting = record({ progress: undefined, resumeFrom: checkpoint(100) }, { committed: checkpoint(100) });
    expect(hoursOf(starting, observed)[0]).toBeCloseTo(9 + failures * 2.25 + 2.25 / 2, 3);
  });
});

describe('a run that was interrupted', () => {
  test('fails as often as it did, and each failure costs what its own did', () => {
    const observed = seen({ step: 1, lost: 0.5, hang: 0.25, gap: 0.25, pending: 0.3, startup: 0.3, warmup: 0.3 }, 2);
    // 2.03 failures in 1.5 h of training and 55.4 h of belief; each costs 0.5 h of loss and 0.3 h of start.
    const failures = (2.03 / (55.385 + 1.5)) * 9;
    const [at = 0, early = 0, late = 0] = hoursOf(record(), observed);
    expect(at).toBeCloseTo(9 + failures * 0.8, 3);
    expect(early).toBeCloseTo(9 * (1 - 1.2816 * 0.04) - 1 / 12, 2);
    // At most one failure in nine of ten such runs, and half a loss that nobody has seen yet.
    expect(late).toBeCloseTo(9 * (1 + 1.2816 * 0.04) + 0.8 + 0.4 + 1 / 12, 2);
  });

  test('goes on from its newest commit once its attempt is over', () => {
    const over = record({ phase: 'ended' }, { committed: checkpoint(50) });
    expect(outlook(over, seen()).progressPercent).toBe(5);
    expect(hoursOf(over)[0]).toBeCloseTo(19 + 0.125, 1);
  });
});

test.each<[string, Partial<Attempt>, Partial<RunRecord>, number]>([
  ['the step of the live attempt', {}, { committed: checkpoint(50) }, 10],
  ['what it resumes from, before its first step', { progress: undefined, resumeFrom: checkpoint(70) }, {}, 7],
  ['the newest commit where neither is known', { progress: undefined }, { committed: checkpoint(60) }, 6],
  ['nothing yet', { progress: undefined }, {}, 0],
  ['all of it, even beyond', { progress: { step: 1200, phase: '', heartbeatAt: T0, movedAt: T0 } }, {}, 100],
])('progress is %s', (_, own, changes, percent) => {
  expect(outlook(record(own, changes), seen()).progressPercent).toBe(percent);
});

test('beyond its last step a run has no time left', () => {
  expect(hoursOf(record({ progress: { step: 1200, phase: '', heartbeatAt: T0, movedAt: T0 } }))[0]).toBe(0);
});

test.each<[string, Partial<RunRecord>, Partial<Ledger['seconds']>]>([
  ['is over', { state: 'failed' }, { step: 1 }],
  ['is to stop', { desired: 'stop' }, { step: 1 }],
  ['has no known length', { policy: policy() }, { step: 1 }],
  ['has booked no step', {}, { save: 1 }],
  ['has made none', { attempt: attempt() }, { step: 1 }],
])('nothing is foretold of a run that %s', (_, changes, hours) => {
  expect(outlook(record({}, changes), seen(hours))).toMatchObject({ etaAt: null, etaInterval80: null });
});

test('without a length there is no share of it', () => {
  expect(outlook(record({}, { policy: policy() }), seen()).progressPercent).toBeNull();
});

test.each([
  [0.1, 1, 0, 0],
  [0.9, 1, 0.1, 0],
  [0.9, 1, 1, 3],
  [0.5, 1000, 4, 4],
])('%f of a negative binomial of shape %f and mean %f lies below %i', (share, shape, mean, count) => {
  expect(countAt(share, shape, mean)).toBe(count);
});
