import { describe, expect, test } from 'vitest';
import { trainingRule } from '../../../lib/core/config/rule';
import { checkAlternatives, checkRun } from '../../../lib/core/rules';
import { BASE, DESCRIPTOR, issuesOf, runOf } from '../../support/runs';

const PLAN = 'arn:aws:sagemaker:eu-west-1:111122223333:training-plan/mine';
const withAlternatives = (types: readonly object[], file: object = {}) => ({
  ...BASE,
  ...file,
  compute: { ...BASE.compute, alternatives: types },
});

describe('capacity alternatives', () => {
  test('types that suit as the first one does are fine', () => {
    const file = withAlternatives([{ instanceType: 'ml.p4de.24xlarge' }, { instanceType: 'ml.p5.48xlarge' }]);
    expect(checkRun(runOf(file))).toEqual([]);
  });

  test.each([
    [
      'a library that does not run there',
      { distribution: { library: 'smp-v2' } },
      'ml.p5en.48xlarge',
      'smp-v2/instance-type',
    ],
    [
      'collectives that do not run there',
      { distribution: { collectives: 'smddp' } },
      'ml.p5.48xlarge',
      'smddp/instance-type',
    ],
    [
      'fewer accelerators than processes',
      { distribution: { library: 'fsdp' } },
      'ml.g5.12xlarge',
      'launcher/processes-per-host',
    ],
    [
      'a precision that it does not have',
      { training: { precision: 'bf16' } },
      'ml.p3dn.24xlarge',
      'training/precision',
    ],
    ['EFA required and not there', {}, 'ml.p3.16xlarge', 'network/efa-required'],
  ])('fails: %s', (_why, file, instanceType, rule) => {
    const found = issuesOf(withAlternatives([{ instanceType }], file), rule);
    expect(found).toMatchObject([{ level: 'error', path: 'compute.alternatives[0].instanceType' }]);
  });

  test('fails: another number of instances that the batch cannot be divided over', () => {
    const training = { globalBatchSize: 16, microBatchSize: 1 };
    const found = issuesOf(
      withAlternatives([{ instanceType: 'ml.p4de.24xlarge', instanceCount: 3 }], { training }),
      'training/',
    );
    expect(found.map((i) => i.message)).toEqual([
      'compute.alternatives[0].instanceType: must suit the rest of the file: training.globalBatchSize must be a multiple of microBatchSize 1 x 24 data-parallel ranks = 24, got 16; use 24',
    ]);
  });

  test('what the first type has too is said once', () => {
    const file = withAlternatives([{ instanceType: 'ml.p4de.24xlarge' }], { distribution: { library: 'nothing' } });
    expect(issuesOf(file, 'distribution/library')).toHaveLength(1);
  });

  test.each([
    ['spot beside them', [{}], { capacity: 'spot' }, 'must not be given with capacity spot'],
    [
      'two plans',
      [{ trainingPlanArn: PLAN }],
      { trainingPlanArn: PLAN },
      'must not contain a plan when compute.trainingPlanArn is set',
    ],
    ['one plan', [{ trainingPlanArn: PLAN }], {}, ''],
    ['a plan of the first type only', [{}], { trainingPlanArn: PLAN }, ''],
  ])('what may not stand beside alternatives: %s', (_what, entries, compute, must) => {
    const alternatives = entries.map((entry) => ({ instanceType: 'ml.p5.48xlarge', ...entry }));
    const file = { ...BASE, compute: { ...BASE.compute, ...compute, alternatives } };
    const beside = checkRun(runOf(file)).filter(
      (i) => i.path === 'compute.alternatives' && i.message.includes('must not'),
    );
    expect(beside.map((i) => i.message)).toEqual(must === '' ? [] : [expect.stringContaining(must)]);
  });

  test('fails: a training plan of another region', () => {
    const file = withAlternatives([{ instanceType: 'ml.p5.48xlarge', trainingPlanArn: PLAN }]);
    expect(issuesOf(file, 'compute/training-plan-region', { descriptor: DESCRIPTOR })).toMatchObject([
      { path: 'compute.alternatives[0].trainingPlanArn' },
    ]);
  });
});

test('what the first type has is not said again of an alternative; another message and another rule are', () => {
  const run = runOf(withAlternatives([{ instanceType: 'ml.p5.48xlarge' }]));
  const rule = trainingRule({
    id: 'made/up',
    level: 'error',
    check: () => [{ path: 'compute', must: 'must be other', fix: 'change it' }],
  });
  const same = {
    rule: 'made/up',
    level: 'error' as const,
    path: 'compute',
    message: 'compute: must be other; change it',
  };
  const foundBeside = (...known: (typeof same)[]) => checkAlternatives([rule], run, {}, known).length;
  expect(foundBeside()).toBe(1);
  expect(foundBeside(same)).toBe(0);
  expect(foundBeside({ ...same, rule: 'made/otherwise' })).toBe(1);
  expect(foundBeside({ ...same, message: 'compute: must be another; change it' })).toBe(1);
});
