import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { loadRun } from '../../../lib/core/config/load';
import { planRun } from '../../../lib/core/planner/run/plan-run';
import { checkRun } from '../../../lib/core/rules';
import { withModelConfig } from '../../../lib/shared/archive/code-context';

const FOLDER = mkdtempSync(path.join(tmpdir(), 'slipway-config-'));
afterAll(() => rmSync(FOLDER, { recursive: true, force: true }));

const QWEN3_8B = {
  architectures: ['Qwen3ForCausalLM'],
  model_type: 'qwen3',
  hidden_size: 4096,
  intermediate_size: 12288,
  num_hidden_layers: 36,
  num_attention_heads: 32,
  num_key_value_heads: 8,
  head_dim: 128,
  vocab_size: 151936,
  rms_norm_eps: 1e-6,
  rope_theta: 1000000,
  sliding_window: null,
  use_sliding_window: false,
  max_window_layers: 36,
  tie_word_embeddings: false,
  torch_dtype: 'bfloat16',
};

const RUN = `name: config
model:
  config: ./config.json
code: { source: ./src }
compute: { instanceType: ml.p5.48xlarge, instanceCount: 2 }
distribution: { library: fsdp }
training: { sequenceLength: 4096, microBatchSize: 1, globalBatchSize: 64, steps: 10 }
`;

/** The run file beside a config.json with these changes; `undefined` leaves a key out. */
function loaded(changes: Record<string, unknown> = {}, overrides: string[] = []) {
  writeFileSync(path.join(FOLDER, 'config.json'), JSON.stringify({ ...QWEN3_8B, ...changes }, null, 2));
  const inlined = withModelConfig(path.join(FOLDER, 'run.yaml'), RUN, overrides);
  return { inlined, run: loadRun(inlined.text, inlined.overrides).value };
}

const messages = (changes: Record<string, unknown>) => {
  const { run } = loaded(changes);
  if (!run) throw new Error('the run file must load');
  return checkRun(run, {}).flatMap(({ rule, message }) => (rule === 'model/config' ? [message] : []));
};

test('a config.json beside the run file is the shape of the plan', () => {
  const { run } = loaded();
  if (!run) throw new Error('the run file must load');
  const plan = planRun(run, { region: 'us-west-2' });
  expect(plan).toMatchObject({ parameters: 8_190_735_360, activeParameters: 8_190_735_360 });
  expect(messages({})).toEqual([]);
});

test('the text of the run file carries the config.json, on the same lines, wherever it is read next', () => {
  const { inlined, run } = loaded();
  expect(inlined.text.split('\n')).toHaveLength(RUN.split('\n').length);
  expect(run?.model?.architecture).toMatchObject({ layers: 36, qkNorm: true, headSize: 128 });
  expect(loaded({}, ['model.config=./config.json']).inlined).toEqual(inlined);
});

test('what was fetched takes the place of its own name only', () => {
  const uri = 's3://models/config.json';
  const fetched = { uri, text: JSON.stringify({ ...QWEN3_8B, num_hidden_layers: 2 }) };
  writeFileSync(path.join(FOLDER, 'config.json'), JSON.stringify(QWEN3_8B));
  const layers = (name: string) => {
    const { text, overrides } = withModelConfig(path.join(FOLDER, 'run.yaml'), RUN, [`model.config=${name}`], fetched);
    return loadRun(text, overrides).value?.model?.architecture.layers;
  };
  expect([layers(uri), layers('./config.json')]).toEqual([2, 36]);
});

test.each([
  ['broken YAML', `${RUN}name: [`, /./],
  ['a list', '- 1\n', /must be/],
  ['a model that is a word', RUN.replace(/model:\n.*\n/, 'model: 5\n'), /--set: must name a path of the file/],
])('fails: a config.json by --set in %s is refused like the file without it', (_, text, message) => {
  writeFileSync(path.join(FOLDER, 'config.json'), JSON.stringify(QWEN3_8B));
  const inlined = withModelConfig(path.join(FOLDER, 'run.yaml'), text, ['model.config=./config.json']);
  const { value, issues } = loadRun(inlined.text, inlined.overrides);
  expect(value).toBeUndefined();
  expect(issues.map((one) => one.message).join('\n')).toMatch(message);
});

test('a model without a value takes the config.json of --set', () => {
  writeFileSync(path.join(FOLDER, 'config.json'), JSON.stringify(QWEN3_8B));
  const text = RUN.replace(/model:\n.*\n/, 'model:\n');
  const inlined = withModelConfig(path.join(FOLDER, 'run.yaml'), text, ['model.config=./config.json']);
  expect(loadRun(inlined.text, inlined.overrides).value?.model?.architecture.layers).toBe(36);
});

test.each([
  [
    'an unknown key',
    { gated_delta: 4 },
    'model.config: gated_delta (line 20) must be a key that Slipway supports for model_type qwen3, got 4; remove it if it does not change the model, or use model.architecture',
  ],
  [
    'heads that do not divide',
    { num_key_value_heads: 5 },
    'model.config: num_key_value_heads (line 10) must divide num_attention_heads 32, got 5; correct one of the two',
  ],
  [
    'a list of another length',
    { layer_types: ['full_attention'] },
    'model.config: layer_types (line 20) must have one entry for each of the 36 layers, got 1 entries; correct the list or the number of layers',
  ],
  [
    'another family',
    { model_type: 'mamba2' },
    'model.config: model_type (line 5) must be a decoder family that Slipway supports, got mamba2; write model.architecture, or plan it by a preset of the same size',
  ],
  [
    'a size that is missing',
    { vocab_size: undefined },
    'model.config: vocab_size must be a whole number of at least 1, got nothing; copy it from the model',
  ],
  [
    'a size that is no number',
    { hidden_size: 'big' },
    'model.config: hidden_size (line 6) must be a whole number of at least 1, got big; copy it from the model',
  ],
  [
    'more layers than any model has',
    { num_hidden_layers: 1001 },
    'model.config: num_hidden_layers (line 8) must be at most 1000, got 1001; copy it from the model',
  ],
])('fails: %s', (_name, changes, message) => {
  expect(messages(changes)).toEqual([message]);
});

test('fails: a file that is not there stays a name, which is refused', () => {
  const run = loadRun(RUN.replace('./config.json', './other.json')).value;
  if (!run) throw new Error('the run file must load');
  expect(checkRun(run, {}).map(({ message }) => message)).toContain(
    'model.config: must be a config.json of at most 1 MB in the repository of the run file, got ./other.json; give its path from the run file on',
  );
});

test('fails: the built-in trainer is not given parts that it does not compute', () => {
  const { inlined } = loaded();
  const text = inlined.text.replace('./src', 'builtin').replace('source: ./src', 'source: builtin');
  const run = loadRun(text, ['model.config=', 'model.preset=minimax-m2']).value;
  if (!run) throw new Error('the run file must load');
  const parts = checkRun(run, {}).filter(({ rule }) => rule === 'model/builtin-parts');
  expect(parts.map(({ path: at }) => at)).toContain('model.preset');
});
