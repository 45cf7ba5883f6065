// Every scenario, and looks whose calls fail, come to the same whether quiet looks are skipped or not; `npm test` plays a few, drawn by its seed.
import { expect, test } from 'vitest';
import { compareQuietLooks, compareScenario, SCENARIOS, scenarioOf } from '../simulation/compare-quiet-looks';
import { LIMITS, run } from '../simulation/support';

const ALL = 'Number of instances across all training jobs';

test.each(SCENARIOS)('%s', async (name) => {
  await compareScenario(name);
});

test.each([
  ['dynamodb:TransactWriteItems', { error: 'InternalServerError' }],
  ['dynamodb:TransactWriteItems', { answerLost: true }],
  ['sagemaker:DescribeTrainingJob', { error: 'ThrottlingException' }],
  ['s3:ListObjectsV2', { error: 'SlowDown' }],
  ['s3:GetObject', { error: 'InternalError' }],
  ['s3:GetObject', { empty: true }],
  ['dynamodb:Query', { error: 'InternalServerError' }],
  ['dynamodb:BatchGetItem', { takesSeconds: 20 }],
])('looks while %s fails come to the same: %o', async (call, fault) => {
  const elastic = { 'compute.instanceCount': { min: 1, max: 2 } };
  const runs = [run('a', { trainsHours: 20 }), run('b', { trainsHours: 20, set: elastic })];
  const faults = [{ at: '3h', to: '5h', call, ...fault }];
  expect((await compareQuietLooks(scenarioOf({ runs, faults, until: '12h' }), 1)).looks).toBeGreaterThan(10);
});

test.each([
  ['ssm:GetParameter', { error: 'ThrottlingException' }],
  ['ssm:GetParameter', { takesSeconds: 3 }],
  ['servicequotas:GetServiceQuota', { error: 'TooManyRequestsException' }],
  ['sagemaker:ListTrainingJobs', { error: 'ThrottlingException' }],
  ['sagemaker:ListTrainingJobs', { empty: true }],
  ['dynamodb:BatchGetItem', { error: 'InternalServerError' }],
  ['dynamodb:GetItem', { error: 'ProvisionedThroughputExceededException' }],
])('passes in which runs wait while %s fails come to the same: %o', async (call, fault) => {
  const elastic = { 'compute.instanceCount': { min: 2, max: 4 } };
  const runs = [
    run('a', { trainsHours: 10 }),
    run('b', { at: '5m', trainsHours: 1, set: elastic }),
    run('c', { at: '7m', trainsHours: 1, team: 'speech', set: { after: ['a'] } }),
  ];
  const faults = [{ at: '3h', to: '5h', call, ...fault }];
  const skipped = await compareQuietLooks(
    scenarioOf({ runs, limits: { ...LIMITS, [ALL]: 4 }, faults, until: '14h' }),
    1,
  );
  expect(skipped.waited).toBeGreaterThan(50);
});

test.each([30, 600])(
  'looks, ticks and passes while the index is %i s behind come to the same',
  async (indexLagSeconds) => {
    const runs = [run('a', { trainsHours: 6 }), run('b', { at: '5m', trainsHours: 2 }), run('c', { at: '3h' })];
    const faults = [{ at: '2h', to: '9h', indexLagSeconds }];
    const limits = { ...LIMITS, [ALL]: 4 };
    expect((await compareQuietLooks(scenarioOf({ runs, limits, faults, until: '14h' }), 1)).waited).toBeGreaterThan(20);
  },
);
