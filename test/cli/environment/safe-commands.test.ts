// Commands that spend or write: they say what they would do, for which file, and ask.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { ListTrainingJobsCommand, SageMakerClient } from '@aws-sdk/client-sagemaker';
import {
  GetServiceQuotaCommand,
  ListRequestedServiceQuotaChangeHistoryByQuotaCommand,
  RequestServiceQuotaIncreaseCommand,
  ServiceQuotasClient,
} from '@aws-sdk/client-service-quotas';
import { GetCallerIdentityCommand, STSClient } from '@aws-sdk/client-sts';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { mockClient } from '../../support/mocked-clients';
import { runCli } from '../../support/run-cli';

const quotas = mockClient(ServiceQuotasClient);
const sagemaker = mockClient(SageMakerClient);
const sts = mockClient(STSClient);
let folder: string;
let file: string;

beforeEach(() => {
  for (const client of [quotas, sagemaker, sts]) client.reset();
  folder = mkdtempSync(path.join(tmpdir(), 'slipway-safe-'));
  file = path.join(folder, 'research.yaml');
  const require = '[{ instanceType: ml.p5.48xlarge, count: 2 }]';
  writeFileSync(file, `name: research\nregions: { us-west-2: {} }\nquotas: { require: ${require} }\n`);
  quotas.on(GetServiceQuotaCommand).resolves({ Quota: { Value: 0 } });
  quotas.on(ListRequestedServiceQuotaChangeHistoryByQuotaCommand).resolves({ RequestedQuotas: [] });
  quotas.on(RequestServiceQuotaIncreaseCommand).resolves({ RequestedQuota: { Id: '1', Status: 'PENDING' } });
  sagemaker.on(ListTrainingJobsCommand).resolves({ TrainingJobSummaries: [] });
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true });
});
const requests = () => quotas.commandCalls(RequestServiceQuotaIncreaseCommand);

test('quota --request without a terminal requests nothing, and names file, region, limits and what it would request', async () => {
  const { code, stderr } = await runCli('quota', file, '--request');
  expect(code).toBe(2);
  expect(stderr).toContain(`increases in us-west-2 for ${file}:`);
  expect(stderr).toContain('  ml.p5.48xlarge for training job usage: 0 now, 2 requested');
  expect(stderr).toContain('quota --request: must be confirmed, got no interactive terminal; add --yes');
  expect(requests()).toEqual([]);
});

test('quota --request --yes requests them', async () => {
  const { code } = await runCli('quota', file, '--request', '--yes');
  expect(code).toBe(0);
  expect(requests().map(({ args }) => args[0].input.DesiredValue)).toEqual(expect.arrayContaining([2]));
});

test('preflight without a file checks the credentials', async () => {
  sts.on(GetCallerIdentityCommand).resolves({ Account: '111122223333', Arn: 'arn:aws:iam::111122223333:user/me' });
  const { code, stdout } = await runCli('preflight', '--region', 'us-west-2');
  expect(code).toBe(0);
  expect(stdout).toContain('arn:aws:iam::111122223333:user/me in account 111122223333, us-west-2');
  expect(stdout).toMatch(/to check an environment: slipway preflight environments\/\w+\.yaml/);
});

test('a profile that does not exist is named', async () => {
  vi.stubEnv('AWS_PROFILE', 'nope');
  const missing = Object.assign(new Error('Could not load credentials'), { name: 'CredentialsProviderError' });
  sts.on(GetCallerIdentityCommand).rejects(missing);
  const { code, stderr } = await runCli('preflight', '--region', 'us-west-2');
  expect([code, stderr]).toEqual([3, expect.stringContaining('got profile nope (AWS_PROFILE): Could not load')]);
});
