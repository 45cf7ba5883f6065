import { expect, test } from 'vitest';
import { namedTrainingPlans, type TrainingPlanState, trainingPlanIssues } from '../../../lib/core/admission';
import { BASE, runOf } from '../../support/runs';

const ARN = 'arn:aws:sagemaker:us-west-2:111122223333:training-plan/mine';
const NOW = Date.UTC(2026, 10, 22);
const HOUR = 3_600_000;
const STATE: TrainingPlanState = {
  status: 'Active',
  instanceTypes: ['ml.p5.48xlarge'],
  targets: ['training-job'],
  totalInstances: 8,
  freeInstances: 8,
  unhealthyInstances: 0,
  spareInstances: 0,
  ultraServers: 0,
  startsAt: NOW - HOUR,
  endsAt: NOW + 48 * HOUR,
};
const run = (compute: object = {}) =>
  runOf({ ...BASE, compute: { instanceType: 'ml.p5.48xlarge', instanceCount: 4, trainingPlanArn: ARN, ...compute } });

function said(state: Partial<TrainingPlanState>, { hours, compute }: { hours?: number; compute?: object } = {}) {
  const [named] = namedTrainingPlans(run(compute));
  if (!named) throw new Error('the run names a plan');
  return trainingPlanIssues(named, { ...STATE, ...state }, { now: NOW, hours }).map((i) => `${i.level} ${i.message}`);
}
const fails = (level: string, must: string) => [
  expect.stringMatching(new RegExp(`^${level} compute.trainingPlanArn: ${must}`)),
];

test('a plan with room until the run is done says nothing', () => {
  expect(said({}, { hours: 40 })).toEqual([]);
});

test.each<[string, Partial<TrainingPlanState>, string, string]>([
  ['is over', { status: 'Expired', freeInstances: 0 }, 'error', 'must be active or scheduled, got Expired'],
  ['is for HyperPod', { targets: ['hyperpod-cluster'] }, 'error', 'must be a plan for training jobs'],
  ['holds another type', { instanceTypes: ['ml.p4d.24xlarge'] }, 'error', 'must contain ml.p5.48xlarge'],
  [
    'is too small',
    { totalInstances: 3, freeInstances: 3 },
    'error',
    'must contain the 4 instances of the job, got 3 in all',
  ],
  ['is busy', { freeInstances: 2 }, 'warning', 'must have 4 free instances to start at once, got 2 of 8'],
  [
    'has not begun',
    { status: 'Scheduled', startsAt: NOW + 5 * HOUR, freeInstances: 0 },
    'warning',
    'must have begun .* got a start at 2026-11-22 05:00 UTC',
  ],
])('fails: a plan that %s', (_what, state, level, must) => {
  expect(said(state)).toEqual(fails(level, must));
});

test.each([
  [3, 'set compute.instanceCount.max to 3, the largest size that the plan holds, or name a larger plan'],
  [2, 'set compute.instanceCount to 2, the largest size that the plan holds, or name a larger plan'],
  [1, 'lower the number of instances, or name a larger plan'],
])('fails: a plan of %i for a run of two to four, with the size that would do', (totalInstances, fix) => {
  const state = { totalInstances, freeInstances: totalInstances };
  const [issue, ...others] = said(state, { compute: { instanceCount: { min: 2, max: 4 } } });
  expect(others).toEqual([]);
  expect(issue).toMatch(/^error .* must contain the 4 instances of the job, got \d in all; /);
  expect(issue).toContain(fix);
});

test('fails: a plan that ends before the run', () => {
  expect(said({}, { hours: 60 })).toEqual(
    fails('warning', 'must last for the 60.0 hours .* got 48.0 hours until 2026-11-24 00:00 UTC'),
  );
});

test('the spare instance of each UltraServer is named when a job would need it', () => {
  const state = { totalInstances: 8, freeInstances: 6, spareInstances: 2, ultraServers: 2 };
  expect(said(state, { compute: { instanceCount: 8 } })).toEqual([
    'warning compute.trainingPlanArn: must have 8 free instances to start at once, got 6 of 8 instances free, 2 spare, 2 UltraServers; use fewer instances: the service keeps the spare ones of UltraServers',
  ]);
});

test('plans of alternatives are looked at too', () => {
  const alternatives = [{ instanceType: 'ml.p5e.48xlarge', instanceCount: 2, trainingPlanArn: ARN }];
  expect(namedTrainingPlans(run({ trainingPlanArn: undefined, alternatives }))).toEqual([
    { path: 'compute.alternatives[0].trainingPlanArn', arn: ARN, instanceType: 'ml.p5e.48xlarge', instanceCount: 2 },
  ]);
});

test.each([[2], [undefined]])('a plan holds the spare instances too: an alternative with a count of %s', (given) => {
  const alternatives = [{ instanceType: 'ml.p5e.48xlarge', instanceCount: given, trainingPlanArn: ARN }];
  const named = namedTrainingPlans(run({ trainingPlanArn: undefined, spareInstances: 1, alternatives }));
  expect(named).toMatchObject([{ instanceCount: (given ?? 4) + 1 }]);
});
