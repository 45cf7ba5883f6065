import { expect, test } from 'vitest';
import { loadScenario } from '../../tools/simulation/scenario/load';

const ENVIRONMENT = { name: 'lab', regions: { 'us-west-2': {} } };

test('trainsHours takes the place of totalTokens, which a run file may not name beside steps', () => {
  const file = {
    name: 'pretrain',
    model: { preset: 'llama3-8b' },
    code: { source: 'builtin' },
    training: { sequenceLength: 8192, globalBatchSize: 256, totalTokens: 1e11 },
    compute: { instanceType: 'ml.p5.48xlarge', instanceCount: 4 },
  };
  const scenario = {
    schema: 1,
    environment: ENVIRONMENT,
    runs: [{ id: 'a', file, trainsHours: 2, secondsPerStep: 10 }],
  };
  const { value, issues } = loadScenario(JSON.stringify(scenario), () => '');
  expect(issues).toEqual([]);
  expect(JSON.parse(value?.runs[0]?.text ?? '{}').training).toEqual({
    sequenceLength: 8192,
    globalBatchSize: 256,
    steps: 720,
  });
});
