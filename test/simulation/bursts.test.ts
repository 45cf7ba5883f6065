import { expect, test } from 'vitest';
import { readScenario } from '../../tools/simulation/scenario/load';
import { play } from '../../tools/simulation/simulate';
import { broken, ENVIRONMENT, PRETRAIN } from './support';

test('200 runs that start in one minute have their jobs after 1.5 times what the rate allows, with 1.2 calls a job', async () => {
  const file = { ...PRETRAIN, compute: { instanceType: 'ml.g5.12xlarge', instanceCount: 1 } };
  const scenario = {
    schema: 1,
    environment: ENVIRONMENT,
    limits: { 'ml.g5.12xlarge for training job usage': 2000, 'Number of instances across all training jobs': 2000 },
    runs: Array.from({ length: 200 }, (_, i) => ({ at: `${10 + (i % 60)}s`, id: `r${i}`, file, trainsHours: 1 })),
    until: '1h',
  };
  const { value, issues } = readScenario(scenario, (path) => {
    throw new Error(`no file ${path}`);
  });
  if (!value) throw new Error(issues.map(({ message }) => message).join('\n'));
  const { result, world } = await play(value, 1);
  const created = world.runs.flatMap((run) => run.jobs.map((job) => job.createdAt));
  expect(created).toHaveLength(200);
  expect(Math.max(...created) - Math.min(...created)).toBeLessThan(1.5 * 200 * 1000);
  expect(result.calls['sagemaker:CreateTrainingJob']?.count).toBeLessThanOrEqual(1.2 * 200);
  expect(broken(result)).toEqual([]);
});
