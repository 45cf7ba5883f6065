import { stringify } from 'yaml';
import type { SimulationResult } from '../../tools/simulation';
import { readScenario } from '../../tools/simulation/scenario/load';
import { play } from '../../tools/simulation/simulate';

export const PRETRAIN = {
  name: 'pretrain',
  code: { source: 'builtin' },
  model: { architecture: { layers: 2, hiddenSize: 64, attentionHeads: 4, ffnHiddenSize: 128, vocabularySize: 256 } },
  training: { sequenceLength: 128, microBatchSize: 1, globalBatchSize: 128, steps: 100 },
  compute: { instanceType: 'ml.p5.48xlarge', instanceCount: 4 },
  data: [{ channel: 'train', s3: 's3://{dataBucket}/tokens/' }],
};

export const ENVIRONMENT = { name: 'research', regions: { 'us-west-2': {} }, teams: { nlp: { share: 2 }, speech: {} } };

export const LIMITS = {
  'ml.p5.48xlarge for training job usage': 8,
  'ml.p5.48xlarge for spot training job usage': 8,
  'Number of instances across all training jobs': 8,
  'Number of instances across all spot training jobs': 8,
};

/** A run of six hours that starts at once: 12 minutes of start-up, 10 s a step, a commit each half hour. */
export const run = (id: string, more: object = {}) => ({
  id,
  file: PRETRAIN,
  trainsHours: 6,
  commitEveryMinutes: 30,
  secondsPerStep: 10,
  startMinutes: 12,
  ...more,
});

/** Plays a scenario of one run `a`, unless it says otherwise. */
export async function played(more: object, seed = 1): Promise<SimulationResult> {
  const scenario = { schema: 1, environment: ENVIRONMENT, limits: LIMITS, runs: [run('a')], until: '24h', ...more };
  const { value, issues } = readScenario(scenario, (file) => {
    throw new Error(`no file ${file}`);
  });
  if (!value) throw new Error(issues.map(({ message }) => message).join('\n'));
  const { result } = await play(value, seed);
  if (process.env.SHOW)
    process.stderr.write(`${stringify({ ...result, calls: undefined, invariants: broken(result) })}\n`);
  return result;
}

export const broken = (result: SimulationResult) => result.invariants.filter(({ holds }) => !holds);

/** The run `id` of a result. */
export function runOf(result: SimulationResult, id = 'a') {
  const found = result.runs.find((one) => one.id === id);
  if (!found) throw new Error(`no run ${id}`);
  return found;
}
