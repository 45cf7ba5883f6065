import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { issuesOf, runOf } from '../../../support/runs';

const on = (instanceType: string, environmentVariables: object = {}, distribution: object = {}) => ({
  name: 'trn',
  code: { source: './src' },
  image: { kind: 'uri', uri: '111122223333.dkr.ecr.us-west-2.amazonaws.com/torch-neuron:sdk2.33.0' },
  compute: { instanceType, instanceCount: 2 },
  distribution: { library: 'custom', launcher: 'torchrun', ...distribution },
  environmentVariables,
});
const TRN2 = 'ml.trn2.48xlarge';
const lnc = (value: string) => ({ NEURON_LOGICAL_NC_CONFIG: value });

test('torchrun starts one process for each NeuronCore that the runtime shows', () => {
  const processes = (file: object) => runOf(file).distribution.processesPerHost;
  expect([TRN2, 'ml.trn1.32xlarge', 'ml.trn1.2xlarge'].map((type) => processes(on(type)))).toEqual([64, 32, 2]);
  expect(['1', '2'].map((value) => processes(on(TRN2, lnc(value))))).toEqual([128, 64]);
  const asked = { processesPerHost: 128 };
  expect(issuesOf(on(TRN2, lnc('1'), asked), 'launcher/processes')).toEqual([]);
  expect(issuesOf(on(TRN2, {}, asked), 'launcher/processes').map((i) => i.message)).toEqual([
    'distribution.processesPerHost: must be at most the 64 accelerators of one ml.trn2.48xlarge, got 128; use 64, or remove it',
  ]);
});

test.each([
  [TRN2, '3', 'entrypoint', ['error', 'must be 1 or 2 on ml.trn2.48xlarge, got 3; remove it; the default is 2']],
  [TRN2, '1', 'toolkit', ['warning', 'must be 2 on ml.trn2.48xlarge under the toolkit contract, whose toolkit']],
  ['ml.trn1.32xlarge', '2', 'entrypoint', ['warning', 'must be left out on ml.trn1.32xlarge']],
])('fails: %s with %s NeuronCores joined, contract %s', (type, value, contract, [level, message]) => {
  const found = issuesOf(on(type, lnc(value), { contract }), 'launcher/logical-cores');
  expect(found).toMatchObject([{ level, message: expect.stringContaining(message ?? '') }]);
});

test.each([
  [TRN2, lnc('1'), 'entrypoint'],
  [TRN2, lnc('2'), 'toolkit'],
  [TRN2, {}, 'toolkit'],
  ['ml.p4d.24xlarge', lnc('7'), 'entrypoint'],
])('%s with %j under contract %s is as it should be', (type, variables, contract) => {
  expect(issuesOf(on(type, variables, { contract }), 'launcher/logical-cores')).toEqual([]);
});

test('fails: Trainium without a cache of compiled programs that the next attempt finds', () => {
  const found = (type: string, variables: object) => issuesOf(on(type, variables), 'launcher/compile-cache').length;
  expect([found(TRN2, {}), found(TRN2, { NEURON_CC_FLAGS: '--model-type=transformer' })]).toEqual([1, 1]);
  for (const kept of [
    { NEURON_COMPILE_CACHE_URL: 's3://b/c' },
    { TORCH_NEURONX_NEFF_CACHE_DIR: '/opt/ml/checkpoints/neff' },
    { NEURON_CC_FLAGS: '--cache_dir=s3://b/c' },
  ])
    expect(found(TRN2, kept)).toBe(0);
  expect(found('ml.p4d.24xlarge', {})).toBe(0);
});

test('collectives of Trainium are those of torch-neuronx', () => {
  expect(issuesOf(on(TRN2, {}, { collectives: 'nccl' }), 'launcher/collectives').map((i) => i.message)).toEqual([
    'distribution.collectives: must be auto on Trainium: torch-neuronx brings its own backend, got nccl; use auto',
  ]);
});

test.each([
  [{ library: 'fsdp' }, {}, 'distribution.library', `must be custom on ${TRN2}`],
  [{ launcher: 'mpi', contract: 'toolkit' }, {}, 'distribution.launcher', `must be torchrun or script on ${TRN2}`],
  [{}, { code: { source: 'builtin' } }, 'code.source', `must be custom code on ${TRN2}`],
])('fails: %j with %j on Trainium, and not on GPUs', (distribution, rest, path, must) => {
  const found = (type: string) => issuesOf({ ...on(type, {}, distribution), ...rest }, 'launcher/trainium');
  expect(found(TRN2)).toMatchObject([{ level: 'error', path, message: expect.stringContaining(must) }]);
  expect(found('ml.p4d.24xlarge')).toEqual([]);
});

test('the run file for Trainium2 starts 64 processes on each of its two hosts, and no rule has an error for it', () => {
  const file = parse(readFileSync(path.join(__dirname, '../../../../runs/trainers/trn2-ddp.yaml'), 'utf8'));
  const { compute, distribution } = runOf(file);
  expect([compute.instanceCount, distribution.processesPerHost, distribution.launcher]).toEqual([2, 64, 'torchrun']);
  expect(issuesOf(file, '').filter(({ level }) => level === 'error')).toEqual([]);
});
