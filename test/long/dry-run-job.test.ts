// Landing "a job that runs": the request that --dry-run printed, submitted with plain boto3, runs to Completed on two instances.
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { PYTHON, ROOT, type TestSandbox, testSandbox } from '../e2e/support/sandbox';
import { runCli } from '../support/run-cli';
import { DESCRIPTOR } from '../support/runs';

const JOB = 'demo-plain-a001';
let sandbox: TestSandbox;

beforeAll(async () => {
  sandbox = await testSandbox();
});
afterAll(() => sandbox?.end());

/** Sources of this project as byte tokens, by the tokenise step itself run as a processing container would. */
function writeTokens(base: string): string {
  cpSync(path.join(ROOT, 'lib/core/rules'), path.join(base, 'processing/input/raw'), { recursive: true });
  mkdirSync(path.join(base, 'config'));
  writeFileSync(
    path.join(base, 'config/processingjobconfig.json'),
    JSON.stringify({ ProcessingInputs: [{ InputName: 'raw' }] }),
  );
  const containers = path.join(ROOT, 'containers');
  const env = { ...process.env, SAGEMAKER_BASE_DIR: base, PYTHONPATH: `${containers}/trainer:${containers}/driver` };
  execFileSync(PYTHON, ['-m', 'slipway_trainer.tokenize', '--tokenizer', 'byte', '--shard-tokens', '50000'], { env });
  return path.join(base, 'processing/output');
}

describe('a request of --dry-run, submitted by a plain client', () => {
  let job: { TrainingJobStatus: string; FailureReason?: string; SecondaryStatusTransitions: { Status: string }[] };

  beforeAll(async () => {
    const environment = path.join(sandbox.folder, 'environment.json');
    const out = path.join(sandbox.folder, 'out');
    const tokens = writeTokens(path.join(sandbox.folder, 'tokenise'));
    const { driver: _driver, kmsKeyArn: _key, ...descriptor } = DESCRIPTOR;
    const here = {
      name: 'demo',
      account: '000000000000',
      executionRoleArn: 'arn:aws:iam::000000000000:role/e2e-execution',
      dataBucket: 'e2e-data',
      checkpointBucket: 'e2e-checkpoints',
      artifactBucket: 'e2e-artifacts',
      subnetIds: [],
      securityGroupIds: [],
    };
    writeFileSync(environment, JSON.stringify({ ...descriptor, ...here }));
    const dryRun = await runCli(
      'launch',
      path.join(ROOT, 'runs/builtin/demo.yaml'),
      '--environment',
      environment,
      '--run-id',
      'plain',
      '--dry-run',
      '--out',
      out,
      ...['--set', 'training.steps=6', '--set', 'code.arguments.save-every-steps=3'],
    );
    expect(dryRun.code, dryRun.stderr).toBe(0);
    job = JSON.parse(
      await sandbox.call(PYTHON, [path.join(ROOT, 'test/e2e/plain_client.py'), out, 'e2e-data', tokens]),
    );
  });

  test('runs to Completed on two instances', () => {
    expect(job.TrainingJobStatus, job.FailureReason).toBe('Completed');
    expect(job.SecondaryStatusTransitions.map((t) => t.Status)).toEqual([
      'Starting',
      'Downloading',
      'Training',
      'Uploading',
      'Completed',
    ]);
  });

  test('writes both hosts to CloudWatch Logs, and steps once', async () => {
    const aws = path.join(ROOT, '.slipway/python/bin/aws');
    const { events } = JSON.parse(
      await sandbox.call(aws, [
        'logs',
        'filter-log-events',
        '--log-group-name',
        '/aws/sagemaker/TrainingJobs',
        '--log-stream-name-prefix',
        `${JOB}/`,
      ]),
    ) as { events: { message: string; logStreamName: string }[] };
    expect(new Set(events.map((e) => /algo-\d/.exec(e.logStreamName)?.[0]))).toEqual(new Set(['algo-1', 'algo-2']));
    const steps = events.filter((e) => e.message.startsWith('slipway {"event":"step"'));
    expect(steps).toHaveLength(6);
  });

  test('leaves committed checkpoints and the AWS CLI lists the job', async () => {
    const aws = path.join(ROOT, '.slipway/python/bin/aws');
    const objects = await sandbox.call(aws, [
      's3api',
      'list-objects-v2',
      '--bucket',
      'e2e-checkpoints',
      '--query',
      'Contents[].Key',
      '--output',
      'text',
    ]);
    expect(objects).toContain('runs/nlp/plain/step-6/COMMITTED.json');
    const listed = await sandbox.call(aws, [
      'sagemaker',
      'list-training-jobs',
      '--query',
      'TrainingJobSummaries[].TrainingJobName',
      '--output',
      'text',
    ]);
    expect(listed.trim()).toBe(JOB);
  });
});
