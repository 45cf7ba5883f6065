import { describe, expect, test } from 'vitest';
import { growthPays, largerRungs } from '../../../../lib/core/lifecycle/phases/grow';
import type { Rung } from '../../../../lib/core/lifecycle/record';
import { attempt, HOUR, MINUTE, policy, running, T0 } from '../support/records';

const rung = (id: string, instanceCount: number): Rung => ({
  id,
  instances: [{ instanceType: 'ml.p5.48xlarge', instanceCount }],
  usage: 'training',
  usdPerHour: 50 * instanceCount,
});
const LADDER = [rung('as-written@8', 8), rung('as-written@4', 4), rung('on-demand@8', 8), rung('on-demand@4', 4)];

test('larger sizes are those above, of the same kind of capacity', () => {
  const larger = (rungId: string) => largerRungs({ policy: policy({ ladder: LADDER }), rungId });
  expect(larger('as-written@8')).toEqual([]);
  expect(larger('as-written@4')).toEqual(['as-written@8']);
  expect(larger('on-demand@4')).toEqual(['on-demand@8']);
  expect(larger('unknown@4')).toEqual([]);
});

describe('a running elastic run', () => {
  const NOW = T0 + 10 * HOUR;
  const growing = (leftSteps: number, changes: object = {}) =>
    running({
      rungId: 'as-written@4',
      policy: policy({ ladder: LADDER, totalSteps: 1000 + leftSteps }),
      roomFor: { rungId: 'as-written@8', since: T0 },
      attempt: attempt({
        rungId: 'as-written@4',
        trainingSince: T0,
        progress: {
          beatAt: NOW,
          movedAt: NOW,
          phase: '',
          step: 1000,
          vitals: { stepsPerHour: 100, usualStepsPerHour: 100 },
        } as never,
        ...changes,
      }),
    });

  test('moves when twice the instances save enough of the rest', () => {
    expect(growthPays(growing(10_000), NOW)).toBe(
      'asked to save and go on with 8 instances instead of 4: about 50 h less',
    );
    expect(growthPays(growing(50), NOW)).toBeUndefined();
  });

  test('stays while the room is new, training is young, or nobody sees its steps', () => {
    const record = growing(10_000);
    expect(growthPays({ ...record, roomFor: { rungId: 'as-written@8', since: NOW - MINUTE } }, NOW)).toBeUndefined();
    expect(growthPays(growing(10_000, { trainingSince: NOW - MINUTE }), NOW)).toBeUndefined();
    expect(growthPays(growing(10_000, { secondaryStatus: 'Starting' }), NOW)).toBeUndefined();
    expect(growthPays(growing(10_000, { progress: undefined }), NOW)).toBeUndefined();
    expect(growthPays({ ...record, roomFor: undefined }, NOW)).toBeUndefined();
  });
});
