import { readFileSync } from 'node:fs';
import path from 'node:path';
import { GetObjectCommand, S3Client } from '@aws-sdk/client-s3';
import {
  DescribeTrainingJobCommand,
  ListProcessingJobsCommand,
  ListTagsCommand,
  ListTrainingJobsCommand,
  SageMakerClient,
} from '@aws-sdk/client-sagemaker';
import { ListServiceQuotasCommand, ServiceQuotasClient } from '@aws-sdk/client-service-quotas';
import { beforeEach, expect, test } from 'vitest';
import { parse } from 'yaml';
import { mockClient } from '../../support/mocked-clients';
import { runCli } from '../../support/run-cli';

const SAGEMAKER = mockClient(SageMakerClient);
const S3 = mockClient(S3Client);
const QUOTAS = mockClient(ServiceQuotasClient);
const FIXTURES = path.join(__dirname, '../../fixtures/import');
const TRAINER = JSON.parse(readFileSync(path.join(FIXTURES, 'model-trainer.json'), 'utf8'));
const ARN = 'arn:aws:sagemaker:eu-west-1:111122223333:training-job/llama-pretrain-20261122153752';

beforeEach(() => {
  SAGEMAKER.reset();
  S3.reset();
  QUOTAS.reset();
  SAGEMAKER.on(DescribeTrainingJobCommand).resolves({
    ...TRAINER,
    TrainingJobArn: ARN,
    TrainingJobStatus: 'Completed',
    BillableTimeInSeconds: 7200,
    CreationTime: new Date(0),
    EnableNetworkIsolation: false,
  });
  SAGEMAKER.on(ListTagsCommand).resolves({ Tags: [{ Key: 'project', Value: 'llama' }] });
  SAGEMAKER.on(ListTrainingJobsCommand).resolves({ TrainingJobSummaries: [] });
  SAGEMAKER.on(ListProcessingJobsCommand).resolves({ ProcessingJobSummaries: [] });
  QUOTAS.on(ListServiceQuotasCommand).resolves({ Quotas: [] });
});

const body = (value: unknown) => ({ Body: { transformToString: async () => JSON.stringify(value) } as never });

test('a live job becomes a run file with its tags, its script and the verdicts beside it', async () => {
  S3.on(GetObjectCommand).callsFake(({ Key }: { Key: string }) =>
    Key.endsWith('sourcecode.json') ? body({ entry_script: 'train.py' }) : body({ process_count_per_node: 8 }),
  );
  const { code, stdout } = await runCli('import', ARN, '--json');
  expect(code).toBe(0);
  const { runFile, notCarried, issues, verdicts } = JSON.parse(stdout);
  expect(parse(runFile)).toMatchObject({
    tags: { project: 'llama' },
    code: { entryPoint: 'train.py' },
    distribution: { launcher: 'torchrun', processesPerHost: 8 },
  });
  expect(notCarried.map((n: { field: string }) => n.field)).not.toContain('BillableTimeInSeconds');
  expect(issues.every((i: { level: string }) => i.level !== 'error')).toBe(true);
  expect(verdicts.usdPerHour).toBeGreaterThan(0);
  expect(verdicts.quotas.map((q: { verdict: string }) => q.verdict)).toContain('unknown');
  // The region of the ARN is the one that is asked.
  expect(await SAGEMAKER.commandCalls(DescribeTrainingJobCommand)[0]?.thisValue.config.region()).toBe('eu-west-1');
});

test('a job whose tags and files may not be read is imported without them, and says so', async () => {
  SAGEMAKER.on(ListTagsCommand).rejects(Object.assign(new Error('no'), { name: 'AccessDeniedException' }));
  S3.on(GetObjectCommand).rejects(Object.assign(new Error('no'), { name: 'AccessDenied' }));
  const { code, stdout, stderr } = await runCli('import', 'llama-pretrain', '--region', 'us-west-2');
  expect(code).toBe(0);
  expect(stdout).toContain('#   SourceCode.entry_script = s3://');
  expect(stderr).toContain('price: $');
});

test('the text on stdout is the run file alone, so that it can be redirected', async () => {
  const { code, stdout } = await runCli('import', path.join(FIXTURES, 'model-trainer.json'));
  expect(code).toBe(0);
  expect(parse(stdout)).toMatchObject({ compute: { instanceCount: 2 }, code: { arguments: { lr: 0.0003 } } });
});

test.each([
  [
    ['import', 'no such job!'],
    /^slipway: import: must be a training job, its ARN or a readable file, got no such job!/,
  ],
  [['import', 'README.md'], /README\.md: must be the JSON of a CreateTrainingJob request.*docs\/import\.md/],
  [['import', 'README.md', '--set', 'a=b'], /^slipway: --set: must not be given to import, got a=b/],
])('fails: %j ends with 2', async (args, message) => {
  const { code, stderr, stdout } = await runCli(...args);
  expect(code).toBe(2);
  expect(stderr).toMatch(message);
  expect(stdout).toBe('');
});

test('fails: a job that does not exist is a failed service call', async () => {
  SAGEMAKER.on(DescribeTrainingJobCommand).rejects(
    Object.assign(new Error('Requested resource not found.'), { name: 'ValidationException' }),
  );
  const { code, stderr } = await runCli('import', 'gone', '--region', 'us-west-2');
  expect(code).toBe(3);
  expect(stderr).toContain(
    'describing gone in us-west-2: failed, got ValidationException: Requested resource not found.',
  );
});
