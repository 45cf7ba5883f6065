import { describe, expect, test } from 'vitest';
import {
  clusterUsdPerHour,
  freeText,
  namedTrainingPlans,
  type TrainingPlanState,
  trainingPlanIssues,
} from '../../../lib/core/admission';
import { memoryIssues, withFittingAlternatives } from '../../../lib/core/admission/index';
import { BASE, PLANNABLE, runOf } from '../../support/runs';

const ARN = 'arn:aws:sagemaker:us-west-2:111122223333:training-plan/mine';
const NOW = Date.UTC(2026, 10, 22);
const HOUR = 3_600_000;
const GROUPS = {
  instanceGroups: [
    { name: 'a', instanceType: 'ml.p4d.24xlarge', instanceCount: 2 },
    { name: 'b', instanceType: 'ml.c5.xlarge', instanceCount: 3 },
  ],
};
const of = (compute: object) => runOf({ ...BASE, compute });

describe('the price of all hosts', () => {
  const prices = { 'ml.p4d.24xlarge': 20, 'ml.c5.xlarge': 0.5 };
  const price = (compute: object, facts: object = {}) =>
    clusterUsdPerHour(of(compute), { region: 'us-west-2', prices, ...facts });

  test('adds up the groups, with a note on each type', () => {
    const found = price(GROUPS);
    expect(found?.usd).toBe(41.5);
    expect(found?.notes.map((note) => note.split(':')[0])).toEqual(['ml.p4d.24xlarge', 'ml.c5.xlarge']);
    const twice = GROUPS.instanceGroups.map((group, i) => ({ ...group, instanceType: 'ml.c5.xlarge', name: `g${i}` }));
    expect(price({ instanceGroups: twice })).toMatchObject({
      usd: 2.5,
      notes: [expect.stringContaining('ml.c5.xlarge')],
    });
  });

  test('is unknown where that of one type is', () => {
    const unknown = { ...GROUPS.instanceGroups[1], instanceType: 'ml.unheardof.large' };
    expect(price({ instanceGroups: [GROUPS.instanceGroups[0], unknown] })).toBeUndefined();
  });
});

describe('a training plan', () => {
  const STATE: TrainingPlanState = {
    status: 'Active',
    instanceTypes: ['ml.p4d.24xlarge'],
    targets: ['training-job'],
    totalInstances: 8,
    freeInstances: 8,
    unhealthyInstances: 0,
    spareInstances: 0,
    ultraServers: 0,
  };
  const named = { path: 'compute.trainingPlanArn', arn: ARN, instanceType: 'ml.p4d.24xlarge', instanceCount: 4 };
  const said = (state: Partial<TrainingPlanState>, hours?: number) =>
    trainingPlanIssues(named, { ...STATE, ...state }, { now: NOW, hours }).map(
      ({ level, message }) => `${level} ${message}`,
    );

  test('of a job of groups is for the first type and all hosts', () => {
    expect(namedTrainingPlans(of({ ...GROUPS, trainingPlanArn: ARN }))).toEqual([
      { path: 'compute.trainingPlanArn', arn: ARN, instanceType: 'ml.p4d.24xlarge', instanceCount: 5 },
    ]);
    expect(namedTrainingPlans(of({ instanceType: 'ml.p4d.24xlarge' }))).toEqual([]);
  });

  test('without times says nothing of them, whatever the run takes', () => {
    expect(said({}, 1000)).toEqual([]);
  });

  test('that begins now has begun', () => {
    expect(said({ startsAt: NOW })).toEqual([]);
    expect(said({ startsAt: NOW + 1 })).toHaveLength(1);
  });

  test('lasts to the hour, counted from its start where that lies ahead', () => {
    const left = (hours: number, state: Partial<TrainingPlanState> = {}) =>
      said({ endsAt: NOW + 48 * HOUR, ...state }, hours).filter((text) => text.includes('must last'));
    expect(left(48)).toEqual([]);
    expect(left(48.1)).toHaveLength(1);
    expect(left(40, { startsAt: NOW + 8 * HOUR })).toEqual([]);
    expect(left(41, { startsAt: NOW + 8 * HOUR })).toHaveLength(1);
    expect(left(1, { endsAt: NOW - HOUR })).toEqual([expect.stringContaining('got 0.0 hours until')]);
  });

  test('that is over says nothing but that', () => {
    for (const status of ['Expired', 'Failed'] as const)
      expect(said({ status, totalInstances: 1, freeInstances: 0, startsAt: NOW + 1 }, 1000)).toHaveLength(1);
  });

  test('that has not begun has no busy instances', () => {
    expect(said({ status: 'Scheduled', freeInstances: 0 })).toEqual([]);
    expect(said({ freeInstances: 4 })).toEqual([]);
    expect(said({ freeInstances: 3 })).toEqual([
      'warning compute.trainingPlanArn: must have 4 free instances to start at once, got 3 of 8 instances free; the job waits until other jobs of the plan end',
    ]);
    expect(said({ freeInstances: 3, totalInstances: 4 })).toEqual([expect.stringContaining('until other jobs')]);
    expect(said({ freeInstances: 3, spareInstances: 4 })).toEqual([expect.stringContaining('until other jobs')]);
    expect(said({ freeInstances: 3, spareInstances: 5 })).toEqual([
      expect.stringContaining('spare ones of UltraServers'),
    ]);
  });

  test.each<[Partial<TrainingPlanState>, string]>([
    [{}, '8 of 8 instances free'],
    [{ unhealthyInstances: 1 }, '8 of 8 instances free, 1 unhealthy'],
    [{ spareInstances: 2 }, '8 of 8 instances free'],
    [{ ultraServers: 1 }, '8 of 8 instances free, 0 spare, 1 UltraServers'],
  ])('with %o: %s', (state, text) => {
    expect(freeText({ ...STATE, ...state })).toBe(text);
  });
});

describe('a shape that does not fit', () => {
  const run = (microBatchSize: number, compute: object) =>
    runOf({
      ...PLANNABLE,
      training: {
        ...PLANNABLE.training,
        microBatchSize,
        globalBatchSize: 64 * microBatchSize,
        activationCheckpointing: 'none',
      },
      data: [{ channel: 'train', s3: 's3://{dataBucket}/tokens/' }],
      compute,
    });
  const P5 = { instanceType: 'ml.p5.48xlarge', instanceCount: 2 };

  test('gets the advice of the planner where it is the run itself, and may be left out where it is an alternative', () => {
    const [own, other, ...more] = memoryIssues(
      run(64, { ...P5, alternatives: [{ instanceType: 'ml.p4d.24xlarge', instanceCount: 2 }] }),
      'us-west-2',
    );
    expect(more).toEqual([]);
    expect(own).toMatchObject({ path: 'training' });
    expect(own?.message).toMatch(/; training\.(microBatchSize|activationCheckpointing): \w+/);
    expect(own?.message).not.toContain('leave it out');
    expect(other).toMatchObject({ path: 'compute.alternatives[0].instanceType' });
    expect(other?.message).toContain('leave it out, or plan it with more instances');
  });

  test('an alternative without a count has that of the run, and a run whose alternatives fit stays as it is', () => {
    const wide = run(1, { ...P5, alternatives: [{ instanceType: 'ml.p5en.48xlarge' }] });
    expect(withFittingAlternatives(wide, 'us-west-2')).toBe(wide);
  });
});
