import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { GetObjectCommand, NoSuchKey, S3Client } from '@aws-sdk/client-s3';
import { afterAll, beforeEach, expect, test } from 'vitest';
import { chooseClusters } from '../../lib/cli/hub/finetune-choice';
import { type Job, trainText } from '../../lib/cli/hub/finetune-files';
import { fetchRunText, type Repository } from '../../lib/cli/hub/repository';
import { checkRunFile } from '../../lib/cli/inputs';
import type { Descriptor } from '../../lib/core/config/descriptor';
import { mockClient } from '../support/mocked-clients';
import { runCli } from '../support/run-cli';
import { DESCRIPTOR } from '../support/runs';

const COMMIT = 'c'.repeat(40);
const FOLDER = mkdtempSync(path.join(tmpdir(), 'slipway-hub-'));
afterAll(() => rmSync(FOLDER, { recursive: true, force: true }));
/** The shape of Qwen3-8B as its maker publishes it: https://huggingface.co/Qwen/Qwen3-8B, 2026-11-27. */
const CONFIG = JSON.stringify({
  model_type: 'qwen3',
  hidden_size: 4096,
  intermediate_size: 12288,
  num_hidden_layers: 36,
  num_attention_heads: 32,
  num_key_value_heads: 8,
  head_dim: 128,
  vocab_size: 151936,
  max_position_embeddings: 40960,
  rms_norm_eps: 1e-6,
  rope_theta: 1000000,
  tie_word_embeddings: false,
});
const REPOSITORY: Repository = {
  kind: 'model',
  name: 'Qwen/Qwen3-8B',
  revision: 'main',
  commit: COMMIT,
  licence: 'apache-2.0',
  gated: false,
  files: [{ path: 'model.safetensors', bytes: 16e9 }],
  saved: [],
};
const write = (name: string, content: string): string => {
  const file = path.join(FOLDER, name);
  writeFileSync(file, content);
  return file;
};
const descriptorFile = (more: object = {}): string =>
  write('descriptor.json', JSON.stringify({ ...DESCRIPTOR, ...more }));

/** A Python that answers the probe for packages, and `--describe` with a repository. */
const pythonOf = (repository: object): string => {
  const answer = JSON.stringify([repository]);
  const file = write('python', `#!/bin/sh\ncase "$*" in *find_spec*) echo 3.12;; *) echo '${answer}';; esac\n`);
  chmodSync(file, 0o755);
  return file;
};

const s3 = mockClient(S3Client);
const body = (text: string) => ({ Body: { transformToString: async () => text } as never });
beforeEach(() => {
  s3.reset();
  s3.on(GetObjectCommand).rejects(new NoSuchKey({ message: 'none', $metadata: {} }));
});
const fetched = () => {
  const Bucket = DESCRIPTOR.dataBucket;
  const root = `teams/${DESCRIPTOR.team}/hub`;
  const files = { [`${root}/.refs/models/Qwen/Qwen3-8B/main`]: COMMIT };
  const folder = `${root}/Qwen/Qwen3-8B/${COMMIT}`;
  files[`${folder}/SOURCE.json`] = JSON.stringify({ commit: COMMIT, files: [] });
  files[`${folder}/config.json`] = CONFIG;
  for (const [Key, text] of Object.entries(files)) s3.on(GetObjectCommand, { Bucket, Key }).resolves(body(text));
};

const RUN = `name: tune
model: { weights: "hf:Qwen/Qwen3-8B" }
training: { sequenceLength: 2048, microBatchSize: 1, globalBatchSize: 8, steps: 2, activationCheckpointing: full }
code: { source: builtin }
compute: { instanceType: ml.p5.48xlarge, instanceCount: 1 }
data: [{ channel: train, s3: "s3://{dataBucket}/tokens/" }]
`;

test('a run file with a fetched model is planned with the config.json of the commit', async () => {
  fetched();
  const { code, stdout } = await runCli('plan', write('a.yaml', RUN), '--environment', descriptorFile(), '--json');
  expect([code, JSON.parse(stdout).parameters]).toEqual([0, 8_190_735_360]);
});

test('the request reads the folder of the commit', async () => {
  fetched();
  const words = ['launch', write('a.yaml', RUN), '--environment', descriptorFile(), '--dry-run'];
  const { stdout } = await runCli(...words);
  expect(stdout).toContain(`s3://${DESCRIPTOR.dataBucket}/teams/${DESCRIPTOR.team}/hub/Qwen/Qwen3-8B/${COMMIT}/`);
});

test('fails: a model that was not fetched, with the command', async () => {
  const { code, stderr } = await runCli('plan', write('a.yaml', RUN), '--environment', descriptorFile());
  expect([code, stderr]).toEqual([1, expect.stringContaining('slipway fetch hf:Qwen/Qwen3-8B --environment')]);
});

test('fails: a branch offline, where nothing can look up its commit', async () => {
  const { code, stdout } = await runCli('validate', write('a.yaml', RUN), '--json');
  const rules = (JSON.parse(stdout) as { issues: { rule: string }[] }).issues.map(({ rule }) => rule);
  expect([code, rules]).toEqual([1, ['data/hub-commit']]);
});

test.each([
  [['--set', 'model.weights=hf:gpt2'], 'must be an S3 URI such as s3://{dataBucket}/prefix/, or a model of a hub'],
  [['--set', 'model.weights=hf:a/../b'], 'must be an S3 URI'],
  [['--set', 'data[0].source=hf:datasets/a/b'], 'must set exactly one of s3, source, fsxLustre or efs'],
])('fails: %j', async (words, message) => {
  const { code, stderr, stdout } = await runCli('validate', write('a.yaml', RUN), ...words);
  expect([code, stdout + stderr]).toEqual([1, expect.stringContaining(message)]);
});

const fetchCommand = (repository: object, more: object, ...words: string[]) => {
  return runCli(
    'fetch',
    'hf:Qwen/Qwen3-8B',
    '--environment',
    descriptorFile(more),
    '--python',
    pythonOf(repository),
    ...words,
  );
};

test('fails: a gated repository without a secret, before anything is started', async () => {
  const { code, stderr } = await fetchCommand({ ...REPOSITORY, gated: true }, { network: { mode: 'vpc-nat' } });
  expect([code, stderr]).toEqual([1, expect.stringContaining('--set secrets.HF_TOKEN=NAME')]);
});

test('fails: a network without internet, with the command for this machine', async () => {
  const { code, stderr } = await fetchCommand(REPOSITORY, { network: { mode: 'vpc-locked' } });
  expect([code, stderr]).toEqual([
    1,
    expect.stringContaining(
      `slipway fetch hf:Qwen/Qwen3-8B --environment ${DESCRIPTOR.name}/${DESCRIPTOR.team} --local`,
    ),
  ]);
  for (const fact of ['14.9 GiB', 'apache-2.0', '$0.3680 per month', '6 min']) expect(stderr).toContain(fact);
});

test('fails: a prefix that the team may not write', async () => {
  const { code, stderr } = await fetchCommand(REPOSITORY, {}, '--to', 's3://{dataBucket}/teams/other/');
  expect([code, stderr]).toEqual([2, expect.stringContaining('--to: must be a prefix that ends with /')]);
});

test('a fetched commit is not fetched again', async () => {
  fetched();
  const { code, stdout } = await fetchCommand({ ...REPOSITORY, files: [] }, {}, '--json');
  expect([code, JSON.parse(stdout)]).toEqual([0, expect.objectContaining({ commit: COMMIT, runId: null })]);
});

test('the run file of a fetch is valid where there is internet', () => {
  const text = fetchRunText([REPOSITORY], 's3://{dataBucket}/teams/{team}/hub/', ['*.json'], {});
  const descriptor = { ...DESCRIPTOR, network: { mode: 'vpc-nat' } };
  expect(checkRunFile({ file: 'fetch.yaml', text }, {}, descriptor).issues).toEqual([]);
  expect(text).toContain('volumeSizeGiB: 90');
});

/** Fine-tuning of 100,000 rows of Qwen3-8B. */
const jobOf = (lora?: number, quantization?: 'nf4'): Job => ({
  model: { uri: 's3://{dataBucket}/w/', files: [], config: CONFIG, name: 'Qwen3-8B', tokenizer: [], tokenizerFile: '' },
  data: { uri: 's3://{dataBucket}/d/', files: [], id: 'd', sample: { file: '', share: 1 } },
  prefix: 's3://{dataBucket}/teams/{team}/finetune/qwen3-8b/1/',
  recipe: {
    ...{ method: 'sft', sequenceLength: 4096, samples: 20_000 },
    ...(lora && { lora }),
    ...(quantization && { quantization }),
  },
});
const chosen = (lora?: number, guardrails?: Descriptor['guardrails'], instanceType?: string, quantization?: 'nf4') => {
  const descriptor: Descriptor = { ...DESCRIPTOR, guardrails };
  const modelConfig = { uri: 's3://{dataBucket}/w/config.json', text: CONFIG };
  return chooseClusters({
    text: (cluster, limits) => trainText(jobOf(lora, quantization), cluster, limits),
    check: (text) => checkRunFile({ file: 'train.yaml', text }, { modelConfig }, descriptor),
    descriptor,
    instanceType,
  });
};

const ADAPTERS = chosen(16);

test('adapters fit on fewer or cheaper instances than all weights, and both plans fit', () => {
  const [adapters, whole] = [ADAPTERS, chosen()];
  for (const one of [...adapters, ...whole]) {
    expect(one.plan?.fits).toBe('fits');
    expect(checkRunFile({ file: 't', text: one.text }, {}, DESCRIPTOR).run?.limits.maxCostUsd).toBeGreaterThan(0);
  }
  expect(adapters[0]?.usdPerHour ?? 0).toBeLessThan(whole[0]?.usdPerHour ?? 0);
  const rates = whole.map(({ usdPerHour }) => usdPerHour ?? 0);
  expect([...rates].sort((a, b) => a - b)).toEqual(rates);
});

test('adapters on weights in 4 bits fit on cheaper instances than adapters alone', () => {
  const [plain, packed] = [ADAPTERS, chosen(16, undefined, undefined, 'nf4')];
  expect(packed[0]?.usdPerHour ?? 0).toBeLessThan(plain[0]?.usdPerHour ?? 0);
  const modelConfig = { uri: 's3://{dataBucket}/w/config.json', text: CONFIG };
  const { run, issues } = checkRunFile({ file: 't', text: packed[0]?.text ?? '' }, { modelConfig }, DESCRIPTOR);
  expect(issues).toEqual([]);
  expect(run?.training.lora).toEqual({
    ...{ rank: 16, alpha: 32, quantization: 'nf4' },
    targets: ['q_proj', 'k_proj', 'v_proj', 'o_proj'],
  });
  expect(packed[0]?.text).toContain('adapters of rank 16 on weights in 4 bits');
});

test('guardrails bound the choice, and its refusal names the nearest', () => {
  const allowed = { allowedInstanceTypes: ['ml.g5.*'], maxInstancesPerRun: 1 };
  expect(chosen(16, allowed).every(({ cluster }) => /^ml\.g5\./.test(cluster.instanceType))).toBe(true);
  const refused = () => chosen(undefined, { allowedInstanceTypes: ['ml.g5.xlarge'], maxInstancesPerRun: 1 });
  expect(refused).toThrow(
    expect.objectContaining({
      issues: [
        expect.objectContaining({ message: expect.stringMatching(/^--model: must fit .* GiB per GPU on 1 x ml/) }),
      ],
    }),
  );
});

test.each([
  [['--method', 'rl'], '--method: must be sft or dpo, got rl'],
  [['--method', 'sft', '--lora', '0'], '--lora: must be a rank from 1 to 1024, got 0'],
  [['--method', 'sft', '--epochs', '-1'], '--epochs: must be above 0'],
  [['--method', 'sft', '--model', 'hf:datasets/a/b'], '--model: must be a model, got the data set'],
  [['--method', 'sft', '--model', 'gpt2'], '--model: must be hf:ORG/NAME or a prefix in S3'],
])('fails: finetune %j', async (words, message) => {
  const given = ['--model', 'hf:a/b', '--data', 'x.jsonl', '--environment', descriptorFile()];
  const { code, stderr } = await runCli('finetune', ...given, ...words);
  expect([code, stderr]).toEqual([2, expect.stringContaining(message)]);
});
