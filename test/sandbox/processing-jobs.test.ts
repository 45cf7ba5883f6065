import {
  CreateProcessingJobCommand,
  type CreateProcessingJobCommandInput,
  DescribeProcessingJobCommand,
  ListProcessingJobsCommand,
  StopProcessingJobCommand,
} from '@aws-sdk/client-sagemaker';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { instanceQuota } from '../../lib/core/catalog/quotas';
import { processesMarked } from '../../lib/sandbox/processes';
import { SANDBOX_MARKER } from '../../lib/sandbox/run-file';
import { eventually } from '../../lib/sandbox/testing';
import { BUCKET, keys, type Lab, logLines, openLab, put, read } from './support';

const LOCAL = '/opt/ml/processing';
let lab: Lab;

beforeAll(async () => {
  lab = await openLab({ time: { startingSeconds: 0, stopGraceSeconds: 1 } });
}, 120_000);

afterAll(() => lab.close());

function job(
  name: string,
  script: string,
  change: Partial<CreateProcessingJobCommandInput> = {},
): CreateProcessingJobCommandInput {
  const s3 = {
    S3DataType: 'S3Prefix' as const,
    S3InputMode: 'File' as const,
    S3DataDistributionType: 'ShardedByS3Key' as const,
  };
  const output = {
    S3Uri: `s3://${BUCKET}/out/${name}/`,
    LocalPath: `${LOCAL}/output`,
    S3UploadMode: 'EndOfJob' as const,
  };
  return {
    ProcessingJobName: name,
    RoleArn: lab.roleArn,
    AppSpecification: {
      ImageUri: '111122223333.dkr.ecr.us-east-1.amazonaws.com/lab:1',
      ContainerEntrypoint: ['/bin/bash'],
      ContainerArguments: ['-c', `cd $SAGEMAKER_BASE_DIR; ${script}`],
    },
    ProcessingInputs: [
      { InputName: 'raw', S3Input: { S3Uri: `s3://${BUCKET}/raw/`, LocalPath: `${LOCAL}/input/raw`, ...s3 } },
    ],
    ProcessingOutputConfig: { Outputs: [{ OutputName: 'tokens', S3Output: output }] },
    ProcessingResources: { ClusterConfig: { InstanceType: 'ml.m5.xlarge', InstanceCount: 2, VolumeSizeInGB: 10 } },
    ...change,
  };
}

async function run(request: CreateProcessingJobCommandInput) {
  await lab.sagemaker.send(new CreateProcessingJobCommand(request));
  return finished(request.ProcessingJobName ?? '');
}

const describeJob = (ProcessingJobName: string) =>
  lab.sagemaker.send(new DescribeProcessingJobCommand({ ProcessingJobName }));

function finished(name: string) {
  return eventually(async () => {
    const described = await describeJob(name);
    return ['Completed', 'Failed', 'Stopped'].includes(described.ProcessingJobStatus ?? '') && described;
  });
}

test('a job takes its sharded input, runs on every instance, and leaves the outputs of all in S3', async () => {
  for (const name of ['a', 'b', 'c']) await put(lab, `raw/${name}`, name);
  const script =
    'for f in processing/input/raw/*; do tr a-z A-Z < $f > processing/output/$(basename $f); done; ls config; echo fine > output/message';

  const done = await run(job('tokens', script));

  expect(done).toMatchObject({ ProcessingJobStatus: 'Completed', ExitMessage: 'fine\n' });
  expect(await keys(lab, 'out/tokens/')).toEqual(['out/tokens/a', 'out/tokens/b', 'out/tokens/c']);
  expect(await read(lab, 'out/tokens/c')).toBe('C');
  const config = ['hosts', 'processingjobconfig.json', 'resourceconfig.json'];
  expect((await logLines(lab, 'tokens', 'ProcessingJobs')).sort()).toEqual(
    ['algo-1', 'algo-2'].flatMap((host) => config.map((file) => `${host}: ${file}`)),
  );
});

test('a continuous output is in S3 while the job runs', async () => {
  const request = job('stream', 'echo 1 > processing/output/one; exec sleep 600');
  const [output] = request.ProcessingOutputConfig?.Outputs ?? [];
  if (output?.S3Output) output.S3Output.S3UploadMode = 'Continuous';
  await lab.sagemaker.send(new CreateProcessingJobCommand(request));

  await eventually(async () => (await keys(lab, 'out/stream/')).length === 1);
  expect((await describeJob('stream')).ProcessingJobStatus).toBe('InProgress');
  await lab.sagemaker.send(new StopProcessingJobCommand({ ProcessingJobName: 'stream' }));

  expect((await finished('stream')).ProcessingJobStatus).toBe('Stopped');
  expect(processesMarked(SANDBOX_MARKER, lab.sandbox.stateDir)).toEqual([]);
});

test('fails: a bad exit with its message, a runtime limit, a planned internal error', async () => {
  await lab.admin.fault({ kind: 'internal-error', jobName: 'broken', logMatches: 'ready' });

  const bad = await run(job('bad', 'echo no tokens > output/message; exit 4'));
  const long = await run(job('long', 'exec sleep 600', { StoppingCondition: { MaxRuntimeInSeconds: 1 } }));
  const broken = await run(job('broken', 'echo ready; exec sleep 600'));

  expect(bad.FailureReason).toBe('AlgorithmError: no tokens\n, exit code: 4');
  expect(long.FailureReason).toMatch(/^ClientError: .*maximum runtime/);
  expect(broken.FailureReason).toMatch(/^InternalServerError: /);
  expect(await keys(lab, 'out/bad/')).toEqual([]);
});

test('fails: a name that is taken, a path outside, more than the quota', async () => {
  const create = (request: CreateProcessingJobCommandInput) =>
    lab.sagemaker.send(new CreateProcessingJobCommand(request));
  await run(job('taken', 'true'));
  const outside = job('outside', 'true');
  const [input] = outside.ProcessingInputs ?? [];
  if (input?.S3Input) input.S3Input.LocalPath = '/data';
  const many = { ClusterConfig: { InstanceType: 'ml.m5.xlarge' as const, InstanceCount: 5, VolumeSizeInGB: 10 } };

  await expect(create(job('taken', 'true'))).rejects.toMatchObject({ name: 'ResourceInUse' });
  await expect(create(outside)).rejects.toMatchObject({
    name: 'ValidationException',
    message: expect.stringContaining('got /data'),
  });
  await expect(create(job('many', 'true', { ProcessingResources: many }))).rejects.toMatchObject({
    name: 'ResourceLimitExceeded',
    message: expect.stringContaining(`'${instanceQuota('ml.m5.xlarge', 'processing').name}' is 4 Instances`),
  });
});

test('jobs are listed newest first', async () => {
  const { ProcessingJobSummaries } = await lab.sagemaker.send(
    new ListProcessingJobsCommand({ StatusEquals: 'Completed' }),
  );

  expect(ProcessingJobSummaries?.map((summary) => summary.ProcessingJobName)).toEqual(['taken', 'tokens']);
});
