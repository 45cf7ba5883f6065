import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { EC2Client } from '@aws-sdk/client-ec2';
import { ECRClient } from '@aws-sdk/client-ecr';
import { InvokeCommand, LambdaClient } from '@aws-sdk/client-lambda';
import { S3Client } from '@aws-sdk/client-s3';
import { SageMakerClient } from '@aws-sdk/client-sagemaker';
import { ServiceQuotasClient } from '@aws-sdk/client-service-quotas';
import { expect, test } from 'vitest';
import { mockClient } from '../../support/mocked-clients';
import { runCli } from '../../support/run-cli';
import { DESCRIPTOR } from '../../support/runs';

const environment = path.join(mkdtempSync(path.join(tmpdir(), 'slipway-matrix-')), 'environment.json');
writeFileSync(
  environment,
  JSON.stringify({ ...DESCRIPTOR, controlAliasArn: 'arn:aws:lambda:us-west-2:111122223333:function:c:nlp' }),
);
const file = path.join(__dirname, '../../../runs/builtin/starter.yaml');

test('fails: a smoke run of a series, of which it would start one', async () => {
  const lambda = mockClient(LambdaClient);
  const words = ['--smoke', '--matrix', 'training.seed=1,2', '--environment', environment, '--yes'];
  const { code, stderr } = await runCli('launch', file, ...words);
  expect([code, stderr]).toEqual([2, expect.stringContaining('--matrix: must not be used with --smoke, got both')]);
  expect(lambda.calls()).toEqual([]);
});

test('a refusal amid a series names the runs that go on, also in the document of --json', async () => {
  mockClient(EC2Client);
  mockClient(ECRClient);
  mockClient(S3Client);
  mockClient(SageMakerClient);
  mockClient(ServiceQuotasClient);
  const spent = { rule: 'guardrails/team-budget', level: 'error', path: 'teams.nlp.budgetUsdPerMonth', message: 'x' };
  const answers: object[] = [
    { ok: true, runId: 'first-1', uploads: [] },
    { ok: true, runId: 'first-1', state: 'queued', queuePosition: 1 },
    { ok: false, issues: [spent] },
  ];
  mockClient(LambdaClient)
    .on(InvokeCommand)
    .callsFake(() => ({ Payload: Buffer.from(JSON.stringify(answers.shift())) }));
  const words = [
    ...['--set', 'training.sequenceLength=1024', '--set', 'training.globalBatchSize=8192'],
    '--matrix',
    'training.seed=1,2',
    '--environment',
    environment,
    '--region',
    'us-west-2',
    '--yes',
    '--json',
  ];
  const { code, stdout, stderr } = await runCli('launch', file, ...words);
  expect(stderr).toContain('first-1: queued (training.seed=1)');
  expect(stderr.match(/training\.globalBatchSize: should /g)).toHaveLength(2);
  expect(code).toBe(1);
  expect(JSON.parse(stdout)).toMatchObject({
    ok: false,
    runs: [{ runId: 'first-1', label: 'training.seed=1' }],
    issues: [{ rule: 'guardrails/team-budget' }],
  });
});
