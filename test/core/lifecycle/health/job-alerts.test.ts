import { describe, expect, test } from 'vitest';
import { failureHistory } from '../../../../lib/core/lifecycle/ledger';
import type { Vitals } from '../../../../lib/core/lifecycle/record';
import { attempt, HOUR, job, policy, run, running, seeing, T0 } from '../support/records';

const well: Vitals = {
  loss: 2.31,
  lossAlert: null,
  slowHost: null,
  stepsPerHour: 360,
  usualStepsPerHour: 360,
  restarts: 0,
};
const heartbeat = (vitals: Vitals, at = T0 + HOUR) => ({ attempt: 1, step: 40, phase: 'train', writtenAt: at, vitals });
const observe = (vitals: Vitals) => run(running(), seeing({ job: job(), heartbeat: heartbeat(vitals) }), T0 + HOUR);

describe('alerts about a job that moves', () => {
  test('none while all is well, and the loss is kept for status', () => {
    const { notices, record } = observe(well);
    expect(notices).toEqual([]);
    expect(record.attempt?.progress?.vitals?.loss).toBe(2.31);
  });

  test('the first step is what the driver saw, however late the first observation', () => {
    expect(observe({ ...well, firstStep: 21 }).record.attempt).toMatchObject({ firstStep: 21, lastStep: 40 });
    expect(observe(well).record.attempt).toMatchObject({ firstStep: 40 });
  });

  test.each<[string, Partial<Vitals>]>([
    ['throughput-drop', { stepsPerHour: 250 }],
    ['slow-host', { slowHost: { host: 'algo-7', what: 'compute', ratio: 1.4 } }],
    ['loss-alert', { lossAlert: 'step 40: loss 9.1 is more than 3 times its recent mean' }],
  ])('%s is said once and stops nothing', (alert, changes) => {
    const first = observe({ ...well, ...changes });
    expect(first.notices).toEqual([alert]);
    expect(first.effects).toEqual([]);
    const told = { ...first.record, outbox: [] };
    const again = seeing({ job: job(), heartbeat: heartbeat({ ...well, ...changes }, T0 + 2 * HOUR) });
    expect(run(told, again, T0 + 2 * HOUR).notices).toEqual([]);
  });

  test('70 % of the usual speed is not yet a drop', () => {
    expect(observe({ ...well, stepsPerHour: 252 }).notices).toEqual([]);
  });
});

test('a run that will cost more than its cap is said while it can still be helped', () => {
  const withCap = (maxCostUsd: number) =>
    run(
      running({ policy: policy({ maxCostUsd, totalSteps: 3640 }) }),
      seeing({ job: job(), heartbeat: heartbeat(well) }),
      T0 + HOUR,
    ).notices;
  // One hour at $100 has passed; 3,600 steps at 360 an hour are ten more.
  expect(withCap(1101)).toEqual([]);
  expect(withCap(1099)).toEqual(['spend-projected']);
});

test('a second slow host is said too', () => {
  const slow = (host: string) => observe({ ...well, slowHost: { host, what: 'data', ratio: 2 } }).record.alerts;
  expect(slow('algo-1')).not.toEqual(slow('algo-2'));
});

test('a slow network is said without a host', () => {
  const { record } = observe({ ...well, slowHost: { host: '', what: 'all-reduce', ratio: 2 } });
  expect(record.alerts.some((id) => id.startsWith('slow-host/') && id.endsWith('/network'))).toBe(true);
  expect(JSON.stringify(record.outbox)).toContain('all-reduce takes 2 times as long as usual');
});

describe('hosts that were set aside', () => {
  const aside = (host: string) => ({ host, reason: 'GPU 3 is gone' });
  const texts = (vitals: Partial<Vitals>) => observe({ ...well, ...vitals }).record.outbox.map(({ text }) => text);

  test.each<[number | null, string]>([
    [2, '; 2 spare hosts are left'],
    [1, '; 1 spare host is left'],
    [0, '; no spare hosts are left'],
    [null, ''],
  ])('are said with the spare hosts that are left (%s)', (sparesLeft, left) => {
    expect(texts({ setAside: [aside('algo-7')], sparesLeft })).toEqual([
      `pretrain-261121120000: algo-7 was set aside (GPU 3 is gone) and a spare host took its place${left}`,
    ]);
  });

  test('are said once each', () => {
    const first = observe({ ...well, setAside: [aside('algo-7')], sparesLeft: 1 });
    expect(first.notices).toEqual(['host-set-aside']);
    expect(first.effects).toEqual([]);
    const both = { ...well, setAside: [aside('algo-7'), aside('algo-3')], sparesLeft: 0 };
    const later = seeing({ job: job(), heartbeat: heartbeat(both, T0 + 2 * HOUR) });
    const { record } = run({ ...first.record, outbox: [] }, later, T0 + 2 * HOUR);
    expect(record.outbox).toMatchObject([{ alert: 'host-set-aside', runbook: 'spare-hosts' }]);
    expect(record.outbox[0]?.text).toContain('algo-3');
  });
});

test('history: node-days are those of the hosts that train', () => {
  const over = attempt({ phase: 'ended', failureClass: 'platform', endedAt: T0 + 24 * HOUR });
  expect(failureHistory([over], { policy: policy({ spareInstances: 1 }) })).toEqual({ failures: 1, nodeDays: 1 });
});

test('history: failures and restarts in place over the node-days of attempts that are over; capacity and hand-overs do not count', () => {
  const over = (failureClass: 'platform' | 'capacity' | 'planned', restarts = 0) =>
    attempt({
      phase: 'ended',
      failureClass,
      endedAt: T0 + 24 * HOUR,
      progress: { step: 1, phase: 'train', heartbeatAt: T0, movedAt: T0, vitals: { ...well, restarts } },
    });
  const attempts = [over('platform', 2), over('planned', 1), over('capacity'), attempt({ number: 4 })];
  expect(failureHistory(attempts, { policy: policy() })).toEqual({ failures: 4, nodeDays: 6 });
});
