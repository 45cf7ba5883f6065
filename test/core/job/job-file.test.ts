import { expect, test } from 'vitest';
import { jobFile } from '../../../lib/core/job/job-file';
import { BASE, planOf, runOf } from '../../support/runs';

const argumentsOf = (file: Record<string, unknown>) => jobFile(planOf(runOf({ ...BASE, ...file }))).arguments;
const OBSERVED = {
  profiler: 'pytorch',
  tensorBoard: true,
  mlflow: { arn: 'arn:aws:sagemaker:us-west-2:111122223333:mlflow-tracking-server/x', experiment: 'e' },
};

test('the built-in trainer is told what to observe; own code gets its own arguments alone', () => {
  const code = { source: 'builtin', arguments: { 'clip-norm': 2 } };
  const asked = ['--tensorboard', '--mlflow', '--profile'];
  expect(argumentsOf({ code, observability: OBSERVED })).toEqual(['--clip-norm', '2', ...asked]);
  expect(argumentsOf({ code, observability: { profiler: 'off' } })).toEqual(['--clip-norm', '2']);
  expect(argumentsOf({ observability: OBSERVED })).toEqual(argumentsOf({}));
});

test('heartbeats are asked of jobs whose role may write them', () => {
  const heartbeatOf = (file: Record<string, unknown>) => jobFile(planOf(runOf({ ...BASE, ...file }))).heartbeatUri;
  expect(heartbeatOf({})).toMatch(/^s3:\/\/.*\/heartbeat\.json$/);
  expect(heartbeatOf({ network: { isolation: true } })).toBeNull();
  expect(heartbeatOf({ kind: 'processing', code: { source: 'builtin-tokenize' } })).toBeNull();
});

test('the tokenise step is told what the section tokenizer says', () => {
  const code = { source: 'builtin-tokenize', arguments: { tokenizer: 'byte' } };
  const tokenizer = { chatTemplate: '{{ messages }}', trainOn: 'all' };
  const told = ['--tokenizer', 'byte', '--chat-template', '{{ messages }}', '--train-on', 'all'];
  expect(argumentsOf({ kind: 'processing', code, tokenizer })).toEqual(told);
  expect(argumentsOf({ kind: 'processing', code })).toEqual(told.slice(0, 2));
});

test('checkpoints lie where their mode says', () => {
  const uriOf = (checkpoints: Record<string, unknown>, file: Record<string, unknown> = {}) =>
    jobFile(planOf(runOf({ ...BASE, ...file, checkpoints }))).checkpoints;
  const s3 = 's3://{checkpointBucket}/mine/{runId}/';
  expect(uriOf({ mode: 'direct', s3 }).uri).toBe('s3://checkpoint-bucket/mine/base-261101090000/');
  expect(uriOf({ mode: 'managed', s3 }).uri).toBe('/opt/ml/checkpoints');
  expect(uriOf({ mode: 'none' }).uri).toBe('');
  const fsxLustre = { fileSystemId: 'fs-0123456789abcdef0', directoryPath: '/mount/a', access: 'rw' };
  expect(uriOf({ mode: 'fsx' }, { data: [{ channel: 'shared', fsxLustre }] }).uri).toBe(
    '/opt/ml/input/data/shared/runs/nlp/base-261101090000',
  );
  expect(uriOf({ mode: 'direct', keep: 7, intervalMinutes: 11 })).toMatchObject({
    mode: 'direct',
    keep: 7,
    intervalMinutes: 11,
    resumeFrom: '',
  });
});

test('history and rollback are there when there are any', () => {
  const plan = planOf(runOf(BASE));
  expect(jobFile(plan).checkpoints).not.toHaveProperty('history');
  expect(jobFile(plan).checkpoints).not.toHaveProperty('rollback');
  expect(jobFile(plan).training).not.toHaveProperty('skips');
  const history = { failures: 2, nodeDays: 3 } as never;
  const rollback = { before: 40 } as never;
  const skips = [{ step: 40, batches: 2 }] as never;
  const told = jobFile({ ...plan, history, rollback, skips });
  expect(told.checkpoints).toMatchObject({ history, rollback });
  expect(told.training).toMatchObject({ skips });
});

test('DeepSpeed is told its configuration with the batch of the run file, other libraries their parameters', () => {
  const training = { globalBatchSize: 64, microBatchSize: 2 };
  const told = (distribution: Record<string, unknown>) =>
    jobFile(planOf(runOf({ ...BASE, training, distribution }))).distribution;
  const parameters = { train_batch_size: 'auto', shard_degree: 8 };
  const common = { collectives: 'nccl' };
  expect(told({ library: 'fsdp', parameters })).toEqual({ ...common, library: 'fsdp', parameters });
  expect(told({ library: 'deepspeed', parameters })).toEqual({
    ...common,
    library: 'deepspeed',
    parameters: { ...parameters, train_batch_size: 64 },
  });
});

test('the variables of the library come first, and those of the run file are pinned', () => {
  const { env, userPinned } = jobFile(planOf(runOf({ ...BASE, environmentVariables: { NCCL_DEBUG: 'WARN' } })));
  expect(env).toMatchObject({ NCCL_DEBUG: 'WARN' });
  expect(userPinned).toEqual(['NCCL_DEBUG']);
});

test('the built-in trainer is told how files of weights describe its model where it reads or writes them', () => {
  const modelOf = (file: Record<string, unknown>) => jobFile(planOf(runOf({ ...BASE, ...file }))).model;
  const kinds = (file: Record<string, unknown>) => modelOf(file)?.published?.map(({ config }) => config.model_type);
  const [model, code] = [{ preset: 'qwen3-8b' }, { source: 'builtin' }];
  const weights = 's3://{dataBucket}/weights/';
  expect(modelOf({ model, code })).not.toHaveProperty('published');
  expect(modelOf({ model: { ...model, weights } })).not.toHaveProperty('published');
  expect(kinds({ model: { ...model, weights }, code })).toEqual(['qwen3']);
  expect(kinds({ model, code: { ...code, arguments: { 'export-weights': true } } })).toEqual(['qwen3']);
  expect(kinds({ model, code: { ...code, arguments: { 'export-weights': false } } })).toBeUndefined();
  const sizes = { layers: 2, hiddenSize: 64, attentionHeads: 4, ffnHiddenSize: 96, vocabularySize: 100 };
  const architecture = { ...sizes, qkNorm: true, experts: 4, expertsPerToken: 2 };
  expect(kinds({ model: { architecture, weights }, code })).toEqual(['qwen3_moe']);
  const config = JSON.stringify({ ...modelOf({ model: { ...model, weights }, code })?.published?.[0]?.config });
  expect(kinds({ model: { config, weights }, code })).toEqual(['qwen3']);
});
