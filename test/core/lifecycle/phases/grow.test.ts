import { describe, expect, test } from 'vitest';
import { growthPays, largerOptionIds } from '../../../../lib/core/lifecycle/phases/grow';
import type { CapacityOption } from '../../../../lib/core/lifecycle/record';
import { attempt, HOUR, MINUTE, policy, running, T0 } from '../support/records';

const option = (id: string, instanceCount: number): CapacityOption => ({
  id,
  instances: [{ instanceType: 'ml.p5.48xlarge', instanceCount }],
  usage: 'training',
  usdPerHour: 50 * instanceCount,
});
const OPTIONS = [
  option('as-written@8', 8),
  option('as-written@4', 4),
  option('on-demand@8', 8),
  option('on-demand@4', 4),
];

test('larger sizes are those above, of the same kind of capacity', () => {
  const larger = (capacityOptionId: string) =>
    largerOptionIds({ policy: policy({ capacityOptions: OPTIONS }), capacityOptionId });
  expect(larger('as-written@8')).toEqual([]);
  expect(larger('as-written@4')).toEqual(['as-written@8']);
  expect(larger('on-demand@4')).toEqual(['on-demand@8']);
  expect(larger('unknown@4')).toEqual([]);
});

describe('a running elastic run', () => {
  const NOW = T0 + 10 * HOUR;
  const growing = (leftSteps: number, changes: object = {}) =>
    running({
      capacityOptionId: 'as-written@4',
      policy: policy({ capacityOptions: OPTIONS, totalSteps: 1000 + leftSteps }),
      reservation: { capacityOptionId: 'as-written@8', since: T0 },
      attempt: attempt({
        capacityOptionId: 'as-written@4',
        trainingSince: T0,
        progress: {
          heartbeatAt: NOW,
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
    expect(
      growthPays({ ...record, reservation: { capacityOptionId: 'as-written@8', since: NOW - MINUTE } }, NOW),
    ).toBeUndefined();
    expect(growthPays(growing(10_000, { trainingSince: NOW - MINUTE }), NOW)).toBeUndefined();
    expect(growthPays(growing(10_000, { secondaryStatus: 'Starting' }), NOW)).toBeUndefined();
    expect(growthPays(growing(10_000, { progress: undefined }), NOW)).toBeUndefined();
    expect(growthPays({ ...record, reservation: undefined }, NOW)).toBeUndefined();
  });
});
