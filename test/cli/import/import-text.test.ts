import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
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

test.each([
  ['', 'empty'],
  ['hello there', 'prose'],
  ['[1, 2]', 'a list'],
  ['torchrun --nproc_per_node=8 train.py', 'a command line'],
  ['{"a": 1}', 'another object'],
  ['name: x\ncode: {source: ./src}\ncompute: {}', 'a run file'],
])('fails: %j (%s) is nothing that can be imported', (text) => {
  expect(importText(text, { source: 'test' })).toBeUndefined();
});

test('numbers that a run file would change are listed, and large ones are carried as text', () => {
  const HyperParameters = {
    sagemaker_program: '"train.py"',
    sagemaker_submit_directory: '"s3://my-bucket/sourcedir.tar.gz"',
    ...{
      lr: '1e-5',
      decay: '0.10',
      big: '1e30',
      epochs: '3',
      text: '"1.0"',
      escaped: '"\\u00e9"',
      flags: '[1, 2.50, "1.0"]',
    },
    ...{ seed: '12345678901234567890', odd: '9007199254740993', one: '1.0', betas: '[1.0, 2]' },
  };
  const { file, fields } = imported(JSON.stringify({ ...JSON.parse(read('model-trainer.json')), HyperParameters }));
  expect(file.hyperparameters).toEqual({
    ...{ lr: 1e-5, decay: 0.1, big: 1e30, epochs: 3, text: '1.0', escaped: '\u00e9', flags: [1, 2.5, '1.0'] },
    ...{ seed: '12345678901234567890', odd: '9007199254740993', one: 1, betas: [1, 2] },
  });
  expect(fields.filter((field) => field.startsWith('HyperParameters.') && !field.includes('sagemaker'))).toEqual(
    ['seed', 'odd', 'one', 'betas'].map((name) => `HyperParameters.${name}`),
  );
});
