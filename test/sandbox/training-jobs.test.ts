import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { GetObjectCommand } from '@aws-sdk/client-s3';
import { StopTrainingJobCommand } from '@aws-sdk/client-sagemaker';
import { GetCallerIdentityCommand, STSClient } from '@aws-sdk/client-sts';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { processesMarked } from '../../lib/sandbox/processes';
import { SANDBOX_MARKER } from '../../lib/sandbox/run-file';
import { eventually } from '../../lib/sandbox/testing';
import {
  BUCKET,
  bashJob,
  clientOptions,
  create,
  finished,
  inState,
  keys,
  type Lab,
  logLines,
  openLab,
  put,
  read,
  run,
  statesOf,
} from './support';

let lab: Lab;

beforeAll(async () => {
  lab = await openLab({
    time: { stopGraceSeconds: 2, startingSeconds: 0.05, downloadingSeconds: 0 },
  });
}, 120_000);

afterAll(() => lab.close());

test('a job on two instances runs its own entrypoint on each, and its output is in CloudWatch Logs', async () => {
  const job = await run(
    lab,
    bashJob(
      lab,
      'two',
      'echo "I am $(grep -o \'"current_host":"[^"]*"\' $SAGEMAKER_BASE_DIR/input/config/resourceconfig.json)"',
      2,
    ),
  );

  expect(job.TrainingJobStatus).toBe('Completed');
  expect(statesOf(job)).toEqual(['Starting', 'Downloading', 'Training', 'Uploading', 'Completed']);
  expect((await logLines(lab, 'two')).sort()).toEqual([
    'algo-1: I am "current_host":"algo-1"',
    'algo-2: I am "current_host":"algo-2"',
  ]);
});

test('an instance sees its channels, hyperparameters, hosts and variables, and credentials of the role', async () => {
  await put(lab, 'in/a/one.txt', '1');
  await put(lab, 'in/two.txt', '2');
  const script = `cd $SAGEMAKER_BASE_DIR; find input/data -type f | sort; cat input/config/hyperparameters.json; cat input/config/hosts; echo $TRAINING_JOB_NAME $TRAINING_JOB_ARN $COLOUR; curl -s $AWS_CONTAINER_CREDENTIALS_FULL_URI | grep -o '"RoleArn":"[^"]*"'`;
  const request = bashJob(lab, 'sees', script);
  request.HyperParameters = { lr: '0.1' };
  request.Environment = { COLOUR: 'blue sky' };
  request.InputDataConfig = [
    { ChannelName: 'train', DataSource: { S3DataSource: { S3DataType: 'S3Prefix', S3Uri: `s3://${BUCKET}/in/` } } },
  ];

  const job = await run(lab, request);

  expect(job.FailureReason).toBeUndefined();
  const lines = await logLines(lab, 'sees');
  expect(lines).toEqual([
    'algo-1: input/data/train/a/one.txt',
    'algo-1: input/data/train/two.txt',
    'algo-1: {"lr":"0.1"}',
    expect.stringMatching(/^algo-1: 127\.\d+\.\d+\.1 algo-1$/),
    'algo-1: sees arn:aws:sagemaker:us-east-1:000000000000:training-job/sees blue sky',
    `algo-1: "RoleArn":"${lab.roleArn}"`,
  ]);
});

test('the credentials of a container are a session of the role, named as SageMaker names it', async () => {
  const request = bashJob(lab, 'who', 'curl -s $AWS_CONTAINER_CREDENTIALS_FULL_URI > $SAGEMAKER_BASE_DIR/model/own');
  request.OutputDataConfig = { S3OutputPath: `s3://${BUCKET}/out`, CompressionType: 'NONE' };
  await run(lab, request);
  const own = JSON.parse(await read(lab, 'out/who/output/model/own'));
  const credentials = { accessKeyId: own.AccessKeyId, secretAccessKey: own.SecretAccessKey, sessionToken: own.Token };

  const sts = new STSClient({ ...clientOptions(lab.sandbox, lab.sandbox.endpoints.aws), credentials });
  const { Arn } = await sts.send(new GetCallerIdentityCommand({}));

  expect(Arn).toBe('arn:aws:sts::000000000000:assumed-role/trainer/SageMaker');
  expect(Date.parse(own.Expiration)).toBeGreaterThan(Date.now());
});

test('ShardedByS3Key gives each object to one instance, a manifest names its objects', async () => {
  for (const n of [1, 2, 3]) await put(lab, `shards/${n}`, String(n));
  await put(lab, 'list.json', JSON.stringify([{ prefix: `s3://${BUCKET}/shards/` }, '2']));
  const request = bashJob(lab, 'shards', 'cd $SAGEMAKER_BASE_DIR/input/data; echo $(ls s) / $(ls m)', 2);
  const source = (S3Uri: string, rest: object) => ({
    DataSource: { S3DataSource: { S3Uri, S3DataType: 'S3Prefix' as const, ...rest } },
  });
  request.InputDataConfig = [
    { ChannelName: 's', ...source(`s3://${BUCKET}/shards/`, { S3DataDistributionType: 'ShardedByS3Key' }) },
    { ChannelName: 'm', ...source(`s3://${BUCKET}/list.json`, { S3DataType: 'ManifestFile' }) },
  ];

  await run(lab, request);

  expect((await logLines(lab, 'shards')).sort()).toEqual(['algo-1: 1 3 / 2', 'algo-2: 2 / 2']);
});

test('the model of all instances goes to S3 as one archive, other output as another', async () => {
  const script =
    'cd $SAGEMAKER_BASE_DIR; host=$(grep -o "algo-[0-9]" input/config/resourceconfig.json | head -1); echo $host > model/$host; echo x > output/data/log';
  const job = await run(lab, bashJob(lab, 'model', script, 2));

  expect(job.ModelArtifacts?.S3ModelArtifacts).toBe(`s3://${BUCKET}/out/model/output/model.tar.gz`);
  expect(await archive(lab, 'out/model/output/model.tar.gz')).toEqual(['algo-1', 'algo-2']);
  expect(await archive(lab, 'out/model/output/output.tar.gz')).toEqual(['data/log']);
});

test('with CompressionType NONE the files go to S3 as they are', async () => {
  const request = bashJob(
    lab,
    'loose',
    'cd $SAGEMAKER_BASE_DIR; mkdir model/a; echo hi > model/a/b; echo x > output/data/log',
  );
  request.OutputDataConfig = { S3OutputPath: `s3://${BUCKET}/out`, CompressionType: 'NONE' };

  const job = await run(lab, request);

  expect(job.ModelArtifacts?.S3ModelArtifacts).toBe(`s3://${BUCKET}/out/loose/output/model/`);
  expect(await keys(lab, 'out/loose/')).toEqual(['out/loose/output/data/log', 'out/loose/output/model/a/b']);
});

test('instance groups share one job; a channel goes to the groups it names', async () => {
  await put(lab, 'grouped/x', 'x');
  const request = bashJob(
    lab,
    'groups',
    'cd $SAGEMAKER_BASE_DIR; grep -o \'"current_group_name":"[^"]*"\' input/config/resourceconfig.json; find input/data -type f -exec basename {} +',
  );
  request.ResourceConfig = {
    InstanceGroups: ['one', 'two'].map((InstanceGroupName) => ({
      InstanceGroupName,
      InstanceType: 'ml.m5.large',
      InstanceCount: 1,
    })),
    VolumeSizeInGB: 10,
  };
  const source = { S3DataType: 'S3Prefix' as const, S3Uri: `s3://${BUCKET}/grouped/`, InstanceGroupNames: ['two'] };
  request.InputDataConfig = [{ ChannelName: 'c', DataSource: { S3DataSource: source } }];

  const job = await run(lab, request);

  expect(job.TrainingJobStatus).toBe('Completed');
  const lines = await logLines(lab, 'groups');
  expect(lines).toContain('algo-1: "current_group_name":"one"');
  expect(lines).toContain('algo-2: "current_group_name":"two"');
  expect(lines.filter((line) => line.endsWith(': x'))).toEqual(['algo-2: x']);
});

test('a file system channel is a folder that jobs share', async () => {
  const onFileSystem = (name: string, script: string) => {
    const request = bashJob(lab, name, script);
    const source = {
      FileSystemId: 'fs-0123456789abcdef0',
      FileSystemAccessMode: 'rw' as const,
      FileSystemType: 'FSxLustre' as const,
      DirectoryPath: '/fsx/data',
    };
    request.InputDataConfig = [{ ChannelName: 'shared', DataSource: { FileSystemDataSource: source } }];
    return request;
  };

  await run(lab, onFileSystem('writes', 'echo kept > $SAGEMAKER_BASE_DIR/input/data/shared/f'));
  await run(lab, onFileSystem('reads', 'cat $SAGEMAKER_BASE_DIR/input/data/shared/f'));

  expect(await logLines(lab, 'reads')).toEqual(['algo-1: kept']);
});

test('an isolated job gets no credentials', async () => {
  const request = { ...bashJob(lab, 'isolated', 'env | grep -c AWS_CONTAINER || true'), EnableNetworkIsolation: true };

  await run(lab, request);

  expect(await logLines(lab, 'isolated')).toEqual(['algo-1: 0']);
});

test('fails: one bad exit fails the job with the failure file as its reason, and the others are stopped', async () => {
  const script = `cd $SAGEMAKER_BASE_DIR; if grep -q '"current_host":"algo-2"' input/config/resourceconfig.json; then echo "out of luck" > output/failure; exit 3; else exec sleep 600; fi`;
  const job = await run(lab, bashJob(lab, 'bad', script, 2));

  expect(job.TrainingJobStatus).toBe('Failed');
  expect(job.FailureReason).toBe('AlgorithmError: out of luck\n, exit code: 3');
  expect(statesOf(job)).toEqual(['Starting', 'Downloading', 'Training', 'Uploading', 'Failed']);
  expect(processesMarked(SANDBOX_MARKER, lab.sandbox.stateDir)).toEqual([]);
});

test('fails: a channel without objects, an image without an entrypoint', async () => {
  const empty = bashJob(lab, 'empty', 'true');
  empty.InputDataConfig = [
    {
      ChannelName: 'train',
      DataSource: { S3DataSource: { S3DataType: 'S3Prefix', S3Uri: `s3://${BUCKET}/nothing/` } },
    },
  ];
  const image = bashJob(lab, 'image', 'true');
  image.AlgorithmSpecification = { TrainingImage: 'lab:1', TrainingInputMode: 'File' };

  expect((await run(lab, empty)).FailureReason).toMatch(
    /^ClientError: Data download failed: No S3 objects found under S3 URL "s3:\/\/lab\/nothing\/"/,
  );
  expect((await run(lab, image)).FailureReason).toMatch(
    /^ClientError: the sandbox has no Docker and cannot run the entrypoint of image lab:1/,
  );
});

test('a stopped job gets SIGTERM, may save within the grace, and ends Stopped', async () => {
  const script =
    'trap "echo saving; echo x > $SAGEMAKER_BASE_DIR/model/m; exit 0" TERM; echo ready; while :; do sleep 0.05; done';
  const name = await create(lab, bashJob(lab, 'stopped', script));
  await inState(lab, name, 'Training');
  await eventually(async () => (await logLines(lab, name)).includes('algo-1: ready'));

  await lab.sagemaker.send(new StopTrainingJobCommand({ TrainingJobName: name }));
  const job = await finished(lab, name);

  expect(statesOf(job)).toEqual(['Starting', 'Downloading', 'Training', 'Stopping', 'Stopped']);
  expect(await logLines(lab, name)).toContain('algo-1: saving');
  expect(await keys(lab, 'out/stopped/')).toEqual(['out/stopped/output/model.tar.gz']);
});

test('what ignores SIGTERM is killed after the grace, with everything it started', async () => {
  const name = await create(lab, bashJob(lab, 'deaf', 'trap "" TERM; setsid sleep 600 & sleep 600'));
  await inState(lab, name, 'Training');
  const marker = await eventually(() => processesMarked(SANDBOX_MARKER, lab.sandbox.stateDir).length >= 3);
  expect(marker).toBe(true);

  await lab.sagemaker.send(new StopTrainingJobCommand({ TrainingJobName: name }));
  const job = await finished(lab, name);

  expect(job.SecondaryStatus).toBe('Stopped');
  expect(processesMarked(SANDBOX_MARKER, lab.sandbox.stateDir)).toEqual([]);
});

test('a job at its run-time limit is Stopped with MaxRuntimeExceeded', async () => {
  const request = bashJob(lab, 'long', 'exec sleep 600');
  request.StoppingCondition = { MaxRuntimeInSeconds: 1 };

  const job = await run(lab, request);

  expect([job.TrainingJobStatus, job.SecondaryStatus]).toEqual(['Stopped', 'MaxRuntimeExceeded']);
});

test('checkpoints are restored on every instance, uploaded while it runs, and deleted with their file', async () => {
  await put(lab, 'ckpt/old', 'old\n');
  const script =
    'cd $SAGEMAKER_BASE_DIR/checkpoints; cat old; rm old; echo new > new; for i in $(seq 100); do sleep 0.1; done';
  const request = bashJob(lab, 'ckpt', script);
  request.CheckpointConfig = { S3Uri: `s3://${BUCKET}/ckpt/` };
  const name = await create(lab, request);

  await eventually(async () => (await keys(lab, 'ckpt/')).join() === 'ckpt/new');
  expect((await inState(lab, name, 'Training')).TrainingJobStatus).toBe('InProgress');
  expect((await read(lab, 'ckpt/new')).trim()).toBe('new');
  expect(await logLines(lab, name)).toEqual(['algo-1: old']);
  await lab.sagemaker.send(new StopTrainingJobCommand({ TrainingJobName: name }));
  await finished(lab, name);
});

test('metrics are the last values that the expressions of the request find', async () => {
  const request = bashJob(lab, 'metrics', 'echo loss=3.5; echo loss=2.25');
  request.AlgorithmSpecification = {
    ...request.AlgorithmSpecification,
    TrainingInputMode: 'File',
    MetricDefinitions: [{ Name: 'loss', Regex: 'loss=([0-9.]+)' }],
  };

  const job = await run(lab, request);

  expect(job.FinalMetricDataList).toEqual([{ MetricName: 'loss', Value: 2.25, Timestamp: expect.any(Date) }]);
});

async function archive(from: Lab, key: string): Promise<string[]> {
  const { Body } = await from.s3.send(new GetObjectCommand({ Bucket: BUCKET, Key: key }));
  const file = path.join(from.sandbox.stateDir, 'archive.tar.gz');
  writeFileSync(file, (await Body?.transformToByteArray()) ?? '');
  const entries = execFileSync('tar', ['-tzf', file], { encoding: 'utf8' }).trim().split('\n');
  return entries
    .map((entry) => entry.replace(/^\.\//, ''))
    .filter((entry) => entry !== '' && !entry.endsWith('/'))
    .sort();
}
