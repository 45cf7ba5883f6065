// What other runs say about the failures of one: figures worked out by hand; against simulated runs: npm run bench:eta.
import { describe, expect, test } from 'vitest';
import { failureBelief, fleetRun, isAlike, outlook } from '../../../../lib/core/lifecycle/accounting/outlook';
import { admitRun } from '../../../../lib/core/lifecycle/intent';
import { CAUSES } from '../../../../lib/core/lifecycle/ledger';
import { attempt, HOUR, policy, running, T0 } from '../support/records';

const rateOf = ({ shape, hostHours }: { shape: number; hostHours: number }) => shape / hostHours;

describe('what is believed of a run that has shown nothing', () => {
  test('is the published figure, with little weight, where there are no other runs', () => {
    const belief = failureBelief([]);
    expect(belief.shape).toBeCloseTo(0.03, 6);
    expect(rateOf(belief) * 24).toBeCloseTo(6.5e-3, 6);
  });

  test('is the mean rate of other runs, and firm where all of them fail alike', () => {
    const alike = failureBelief(Array.from({ length: 9 }, () => ({ interruptions: 4, hostHours: 192 })));
    expect(rateOf(alike)).toBeCloseTo(36.03 / (9 * 192 + 110.77), 6);
    expect(alike.shape).toBeGreaterThan(50);
    const apart = failureBelief([
      { interruptions: 36, hostHours: 192 },
      ...Array(8).fill({ interruptions: 0, hostHours: 192 }),
    ]);
    expect(rateOf(apart)).toBeCloseTo(rateOf(alike), 6);
    expect(apart.shape).toBeLessThan(0.2);
  });

  test('is calmer than the published figure after many hours without failures, and stays vague', () => {
    const calm = failureBelief([{ interruptions: 0, hostHours: 5000 }]);
    expect(rateOf(calm) * 24).toBeLessThan(6.5e-3 / 10);
    expect(calm.shape).toBeLessThan(0.1);
  });
});

test('other runs that fail move the foretold end, and widen its interval', () => {
  const none = Object.fromEntries(CAUSES.map((cause) => [cause, 0])) as never;
  const ledger = {
    seconds: { ...(none as object), step: 3600, startup: 360 } as never,
    totalSeconds: 0,
    goodput: null,
  };
  const record = running({
    policy: policy({ totalSteps: 1000 }),
    attempt: attempt({ progress: { step: 100, phase: '', heartbeatAt: T0, movedAt: T0 } }),
  });
  const fleet = Array.from({ length: 9 }, () => ({ interruptions: 6, hostHours: 48 }));
  const [alone, among] = [[], fleet].map((others) =>
    outlook(record, { ledger, interruptions: 0, fleet: others, now: T0 }),
  );
  const width = ({ etaInterval80: [from, to] = [0, 0] }: { etaInterval80?: [number, number] }) => to - from;
  expect(among?.etaAt).toBeGreaterThan((alone?.etaAt ?? 0) + HOUR / 4);
  expect(width(among as never)).toBeGreaterThan(width(alone as never) + HOUR / 4);
});

describe('what a record says of its run', () => {
  const trained = (number: number, more: object = {}) =>
    running({
      ...{ admittedAt: T0 - 20 * HOUR, attemptsAtAdmission: 0 },
      attempt: attempt({ number, trainingStartedAt: T0 - 4 * HOUR, ...more }),
    });

  test('is its attempts after the first and its restarts in place, and the hours since it began', () => {
    const hosts = (fleetRun(trained(1), T0)?.hostHours ?? 0) / 4;
    expect(hosts).toBeGreaterThanOrEqual(1);
    expect(fleetRun(trained(1), T0)?.interruptions).toBe(0);
    expect(fleetRun(trained(3), T0)).toEqual({ interruptions: 2, hostHours: 20 * hosts });
    expect(fleetRun(trained(3, { endedAt: T0 - 10 * HOUR }), T0)).toEqual({ interruptions: 2, hostHours: 10 * hosts });
    const vitals = {
      loss: null,
      lossAlert: null,
      slowHost: null,
      stepsPerHour: null,
      usualStepsPerHour: null,
      restarts: 2,
    };
    const restarted = trained(1, { progress: { step: 1, phase: '', heartbeatAt: T0, movedAt: T0, vitals } });
    expect(fleetRun(restarted, T0)?.interruptions).toBe(2);
    expect(fleetRun(trained(3, { pauses: { ms: 5, times: 4 } }), T0)?.interruptions).toBe(6);
  });

  test('is what came after the queue last let it start, where it was preempted or resumed', () => {
    const ended = attempt({ number: 5, phase: 'ended', trainingStartedAt: T0 - 40 * HOUR, endedAt: T0 - 30 * HOUR });
    const { record } = admitRun(running({ admitted: false, attempt: ended }), '', T0 - 20 * HOUR);
    expect(fleetRun(record, T0)).toBeUndefined();
    const on = (number: number) => ({ ...record, attempt: attempt({ number, trainingStartedAt: T0 - 4 * HOUR }) });
    const hosts = (fleetRun(trained(1), T0)?.hostHours ?? 0) / 4;
    expect(fleetRun(on(6), T0)).toEqual({ interruptions: 0, hostHours: 4 * hosts });
    expect(fleetRun(on(8), T0)).toEqual({ interruptions: 2, hostHours: 20 * hosts });
    // Its create was in doubt or refused: the attempt is the first one after the admission.
    const open = admitRun(running({ attempt: attempt({ number: 5, phase: 'intent' }) }), '', T0 - 20 * HOUR).record;
    const now = { ...open, attempt: attempt({ number: 5, trainingStartedAt: T0 - 4 * HOUR }) };
    expect(fleetRun(now, T0)).toEqual({ interruptions: 0, hostHours: 4 * hosts });
  });

  test('is nothing before it trains', () => {
    expect(fleetRun(trained(1, { trainingStartedAt: undefined }), T0)).toBeUndefined();
    expect(fleetRun(trained(2, { trainingStartedAt: undefined }), T0)).toBeUndefined();
    expect(fleetRun(running({ attempt: undefined }), T0)).toBeUndefined();
  });

  test('counts for runs on the same instance types and kind of capacity alone', () => {
    const on = (instanceType: string, usage: string) => {
      const option = { ...policy().capacityOptions[0], instances: [{ instanceType, instanceCount: 2 }], usage };
      return running({ policy: policy({ capacityOptions: [option as never] }) });
    };
    expect(isAlike(on('ml.p5.48xlarge', 'training'), on('ml.p5.48xlarge', 'training'))).toBe(true);
    expect(isAlike(on('ml.p5.48xlarge', 'training'), on('ml.p5.48xlarge', 'spot'))).toBe(false);
    expect(isAlike(on('ml.p5.48xlarge', 'training'), on('ml.p4d.24xlarge', 'training'))).toBe(false);
  });
});
