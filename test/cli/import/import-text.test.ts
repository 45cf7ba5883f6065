import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { readArguments, splitWords } from '../../../lib/cli/import/command-line';
import { importText } from '../../../lib/cli/import/import';

const FIXTURES = path.join(__dirname, '../../fixtures/import');
const read = (name: string) => readFileSync(path.join(FIXTURES, name), 'utf8');

function imported(text: string) {
  const found = importText(text, { source: 'test' });
  if (!found) throw new Error('nothing was imported');
  return { ...found, file: parse(found.runFile), fields: found.notCarried.map(({ field }) => field) };
}

test('a job of ModelTrainer (SDK v3) keeps everything but what its drivers hide', () => {
  const { file, fields, issues } = imported(read('model-trainer.json'));
  expect(issues).toEqual([]);
  expect(file).toEqual({
    name: 'llama-pretrain',
    code: { source: './src', arguments: { lr: 0.0003, epochs: 1, name: 'a b', flag: true } },
    image: { kind: 'dlc', version: '2.8.0' },
    compute: { instanceType: 'ml.p4d.24xlarge', instanceCount: 2 },
    distribution: { library: 'custom' },
    data: [{ channel: 'train', s3: 's3://my-bucket/data/' }],
    checkpoints: { mode: 'managed', s3: 's3://my-bucket/ckpt/', localPath: '/opt/ml/checkpoints' },
    output: { compression: 'gzip' },
    limits: { maxRuntimeSeconds: 86400 },
    hyperparameters: { lr: '0.0003', epochs: '1', name: 'a b', flag: 'true' },
    environmentVariables: { NCCL_DEBUG: 'INFO' },
  });
  expect(fields).toContain('SourceCode.entry_script');
  expect(fields).toContain('ResourceConfig.VolumeSizeInGB');
});

test('the files beside the drivers of ModelTrainer say script and launcher', () => {
  const trainerFiles = {
    sourceCode: { source_dir: './src', entry_script: 'train.py', requirements: 'requirements.txt' },
    distributed: { process_count_per_node: 4, smp: null },
  };
  const found = importText(read('model-trainer.json'), { source: 'test', trainerFiles });
  const file = parse(found?.runFile ?? '');
  expect(file.code).toMatchObject({ entryPoint: 'train.py', requirements: 'requirements.txt' });
  expect(file.distribution).toEqual({ library: 'custom', launcher: 'torchrun', processesPerHost: 4 });
});

test('a member of the request that no run file knows is listed, an unknown one too; what happened to a job is not', () => {
  const { fields } = imported(
    JSON.stringify({
      ...JSON.parse(read('model-trainer.json')),
      NewInTheService: { Enable: true },
      TrainingJobStatus: 'Completed',
      BillableTimeInSeconds: 12,
      ResponseMetadata: { HTTPStatusCode: 200 },
    }),
  );
  expect(fields).toContain('NewInTheService.Enable');
  expect(fields.filter((field) => /Status|Billable|Metadata/.test(field))).toEqual([]);
});

test('placement on UltraServers and the check of the infrastructure are carried', () => {
  const request = {
    ...JSON.parse(read('model-trainer.json')),
    InfraCheckConfig: { EnableInfraCheck: true },
    ResourceConfig: {
      InstanceType: 'ml.p6e-gb200.36xlarge',
      InstanceCount: 18,
      InstancePlacementConfig: {
        EnableMultipleJobs: true,
        PlacementSpecifications: [{ UltraServerId: 'us-1', InstanceCount: 9 }, { InstanceCount: 9 }],
      },
    },
  };
  const { file, fields } = imported(JSON.stringify(request));
  expect(file.compute).toMatchObject({
    infraCheck: true,
    placement: { multipleJobs: true, ultraServers: [{ id: 'us-1', instanceCount: 9 }, { instanceCount: 9 }] },
  });
  expect(fields.filter((field) => /Placement|InfraCheck/.test(field))).toEqual([]);
});

test('a program of the image and the form of the output are carried', () => {
  const request = {
    TrainingJobName: 'own-image',
    AlgorithmSpecification: {
      TrainingImage: '111122223333.dkr.ecr.us-west-2.amazonaws.com/team/train:1.0',
      TrainingInputMode: 'File',
      ContainerEntrypoint: ['/opt/start'],
      ContainerArguments: ['--config', '/opt/ml/input/data/code/train.yaml'],
    },
    InputDataConfig: [
      {
        ChannelName: 'code',
        InputMode: 'File',
        DataSource: {
          S3DataSource: {
            S3DataType: 'S3Prefix',
            S3Uri: 's3://gated/llama/',
            S3DataDistributionType: 'FullyReplicated',
          },
        },
      },
    ],
    OutputDataConfig: { S3OutputPath: 's3://mine/out/', CompressionType: 'GZIP' },
    ResourceConfig: { InstanceType: 'ml.p5.48xlarge', InstanceCount: 2 },
    StoppingCondition: { MaxRuntimeInSeconds: 3600 },
  };
  const { fields, run, issues } = imported(JSON.stringify(request));
  expect(issues).toEqual([]);
  expect(run?.distribution).toMatchObject({ contract: 'container', library: 'custom', launcher: 'script' });
  expect(fields).toEqual(['TrainingJobName', 'OutputDataConfig.S3OutputPath']);
});

test('a NeMo recipe gives its batch, cluster and parallel sizes; the rest is listed', () => {
  const { file, fields, issues } = imported(read('recipe-llama3-70b.yaml'));
  expect(issues).toEqual([]);
  expect(file).toEqual({
    name: 'llama-3-3-70b',
    training: { precision: 'bf16', sequenceLength: 2048, microBatchSize: 1, globalBatchSize: 512, steps: 1168251 },
    code: { source: './src', entryPoint: 'train.py' },
    compute: { instanceType: 'ml.p5.48xlarge', instanceCount: 16 },
    distribution: {
      library: 'megatron',
      parameters: {
        'tensor-model-parallel-size': 8,
        'pipeline-model-parallel-size': 4,
        'context-parallel-size': 1,
        'sequence-parallel': true,
      },
    },
    limits: { maxRuntimeSeconds: 518400 },
  });
  expect(fields).toEqual(expect.arrayContaining(['optim.config.lr', 'run.model_type', 'model.config.vocab_size']));
});

test('a recipe of SMP v2 gives model and degrees, so that the planner can judge it', () => {
  const { file, run } = imported(read('recipe-smp-llama3-8b.yaml'));
  expect(file.distribution).toEqual({
    library: 'smp-v2',
    parameters: {
      tensor_parallel_degree: 4,
      context_parallel_degree: 2,
      expert_parallel_degree: 1,
      hybrid_shard_degree: 16,
      activation_loading_horizon: 1,
    },
  });
  expect(run?.model?.architecture).toMatchObject({ layers: 32, hiddenSize: 4096, kvHeads: 8, vocabularySize: 128256 });
});

test.each([
  [
    'NCCL_DEBUG=INFO torchrun --nnodes=4 --nproc_per_node 8 --rdzv-backend=c10d train.py --lr 3e-4 --layers 32 --bf16',
    { library: 'custom', launcher: 'torchrun', processesPerHost: 8 },
    { source: './src', entryPoint: 'train.py', arguments: { lr: '3e-4', layers: 32, bf16: true } },
    4,
  ],
  [
    'python3 -m torch.distributed.run --nproc-per-node=2 -m pkg.train --data a --data b',
    { library: 'custom', launcher: 'torchrun', processesPerHost: 2 },
    { source: './src', entryPoint: 'pkg.train', arguments: { data: ['a', 'b'] } },
    1,
  ],
  [
    'torchx run -s slurm dist.ddp -j 2x8 --script main.py -- --epochs 3',
    { library: 'custom', launcher: 'torchrun', processesPerHost: 8 },
    { source: './src', entryPoint: 'main.py', arguments: { epochs: 3 } },
    2,
  ],
  ['python train.py', { library: 'custom', launcher: 'script' }, { source: './src', entryPoint: 'train.py' }, 1],
])('%s', (line, distribution, code, instanceCount) => {
  const { file } = imported(`#!/bin/bash\nset -e\n${line}\n`);
  expect(file.distribution).toEqual(distribution);
  expect(file.code).toEqual(code);
  expect(file.compute.instanceCount).toBe(instanceCount);
});

test('what a command line says and a run file cannot is listed', () => {
  const { fields, notCarried } = imported('torchrun --nproc_per_node=8 --max-restarts=3 train.py config.toml --x 1');
  expect(fields).toEqual(expect.arrayContaining(['command --max-restarts', 'command', 'instance type']));
  expect(notCarried.find(({ field }) => field === 'command')?.value).toBe('config.toml');
});

test.each([
  ['', 'empty'],
  ['hello there', 'prose'],
  ['[1, 2]', 'a list'],
  ['{"a": 1}', 'another object'],
  ['name: x\ncode: {source: ./src}\ncompute: {}', 'a run file'],
])('fails: %j (%s) is nothing that can be imported', (text) => {
  expect(importText(text, { source: 'test' })).toBeUndefined();
});

test('words of a line are read as a shell reads them', () => {
  expect(splitWords(`a "b c" 'd "e"' f\\ g "h\\"i"'j'`)).toEqual(['a', 'b c', 'd "e"', 'f g', 'h"ij']);
});

test('a negative number is a value and not a flag', () => {
  expect(readArguments(['--shift', '-1', '--flag'])).toEqual({ values: { shift: -1, flag: true }, others: [] });
});
