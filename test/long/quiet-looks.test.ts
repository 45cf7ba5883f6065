// Every scenario, and looks whose calls fail, come to the same whether quiet looks are skipped or not; `npm test` plays a few, drawn by its seed.
import { expect, test } from 'vitest';
import { compareQuietLooks, compareScenario, SCENARIOS, scenarioOf } from '../simulation/compare-quiet-looks';
import { run } from '../simulation/support';

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
