// Validates a fine-tuning run of every preset, and of each config.json on a line of standard input, with published weights, and writes one
// line for each: the section `model` of its job.json and the errors. The Python tests compare them with what the built-in trainer imports.
import { readFileSync } from 'node:fs';
import { MODEL_NAMES } from '../lib/core/catalog/models';
import { loadRun } from '../lib/core/config/load';
import { modelSection } from '../lib/core/job/job-file';
import { checkRun } from '../lib/core/rules';

const STANDARD_INPUT = 0;

const REST = {
  name: 'from-weights',
  code: { source: 'builtin' },
  training: { sequenceLength: 2048, microBatchSize: 1, globalBatchSize: 64, steps: 10 },
  compute: { instanceType: 'ml.p5en.48xlarge', instanceCount: 2 },
  distribution: { library: 'fsdp' },
  data: [{ channel: 'train', s3: 's3://{dataBucket}/tokens/' }],
};

function answer(name: string, model: object): object {
  const { value, issues } = loadRun(
    JSON.stringify({ ...REST, model: { ...model, weights: 's3://{dataBucket}/weights/' } }),
  );
  const found = value ? [...issues, ...checkRun(value)] : issues;
  const errors = found.filter(({ level }) => level === 'error').map(({ rule, message }) => `${rule} ${message}`);
  return { name, architecture: value && modelSection(value), errors };
}

const configs = readFileSync(STANDARD_INPUT, 'utf8')
  .split('\n')
  .filter((line) => line !== '');
for (const found of [
  ...MODEL_NAMES.map((preset) => answer(preset, { preset })),
  ...configs.map((config) => answer('', { config })),
])
  process.stdout.write(`${JSON.stringify(found)}\n`);
