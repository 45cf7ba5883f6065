// `npm run bench:simulation [-- SEED...]`: CPU seconds of the two plays whose speed docs/simulate.md states: a month of 50 runs, and drawn histories of a busy week.
import { cpuUsage, stdout } from 'node:process';
import { readScenarioFile } from '../tools/simulation';
import { concrete } from '../tools/simulation/histories/histories';
import { readScenario, type Scenario } from '../tools/simulation/scenario/load';
import { type Play, play } from '../tools/simulation/simulate';

const RUN_FILE = {
  name: 'pretrain',
  code: { source: 'builtin' },
  model: { architecture: { layers: 2, hiddenSize: 64, attentionHeads: 4, ffnHiddenSize: 128, vocabularySize: 256 } },
  training: { sequenceLength: 128, microBatchSize: 1, globalBatchSize: 128, steps: 100 },
  compute: { instanceType: 'ml.p5.48xlarge', instanceCount: 4 },
  data: [{ channel: 'train', s3: 's3://{dataBucket}/tokens/' }],
};
const SEEDS = process.argv.slice(2).map(Number);

const noFiles = (file: string): string => {
  throw new Error(`no file ${file}`);
};

/** Fifty runs of two teams that train all month. */
function month(): Scenario {
  const { value, issues } = readScenario(
    {
      schema: 1,
      environment: { name: 'research', regions: { 'us-west-2': {} }, teams: { nlp: {}, speech: {} } },
      limits: {
        'ml.p5.48xlarge for training job usage': 200,
        'Number of instances across all training jobs': 200,
      },
      runs: Array.from({ length: 50 }, (_, i) => ({
        at: `${i}m`,
        id: `r${i}`,
        file: RUN_FILE,
        team: i % 2 === 0 ? 'nlp' : 'speech',
        trainsHours: 1000,
      })),
      until: '720h',
    },
    noFiles,
  );
  if (!value) throw new Error(issues.map(({ message }) => message).join('\n'));
  return value;
}

function history(seed: number): Scenario {
  const { value } = readScenarioFile('test/simulation/long.yaml');
  if (!value) throw new Error('test/simulation/long.yaml was not read');
  return concrete(value, seed, noFiles);
}

async function measure(what: string, scenario: Scenario, seed: number): Promise<void> {
  const began = cpuUsage();
  const { result, world }: Play = await play(scenario, seed);
  const { user, system } = cpuUsage(began);
  const calls = Object.values(result.calls).reduce((sum, { count }) => sum + count, 0);
  const broken = result.invariants.filter(({ holds }) => !holds).map(({ name }) => name);
  stdout.write(
    `${what}: ${((user + system) / 1e6).toFixed(2)} s CPU, ${world.queue.sent} messages, ${calls} calls, broken invariants: ${broken.join(', ') || 'none'}\n`,
  );
}

async function main(): Promise<void> {
  await measure('50 runs, 30 days', month(), 1);
  for (const seed of SEEDS.length > 0 ? SEEDS : [1, 2, 3]) {
    await measure(`40 runs, 200 hours, seed ${seed}`, history(seed), seed);
  }
}

main().catch((error: Error) => {
  process.stderr.write(`${error.stack}\n`);
  process.exitCode = 1;
});
