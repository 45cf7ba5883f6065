import path from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { CloudFormationClient, GetTemplateCommand } from '@aws-sdk/client-cloudformation';
import { ListTrainingJobsCommand, SageMakerClient } from '@aws-sdk/client-sagemaker';
import {
  GetServiceQuotaCommand,
  ListRequestedServiceQuotaChangeHistoryByQuotaCommand,
  ServiceQuotasClient,
} from '@aws-sdk/client-service-quotas';
import { beforeEach, expect, test, vi } from 'vitest';
import { followIncreases } from '../../../lib/cli/environment/quota-wait';
import { mockClient } from '../../support/mocked-clients';
import { runCli } from '../../support/run-cli';
import { callsOf, misspelt } from '../../support/shell-words';

const quotas = mockClient(ServiceQuotasClient);
const WANTED = { name: 'ml.p5.48xlarge for training job usage', code: 'L-C4752B3A', desired: 4 };
const limits = (...values: number[]) =>
  values.reduce((mock, Value) => mock.resolvesOnce({ Quota: { Value } }), quotas.on(GetServiceQuotaCommand));
const requests = (...words: string[]) =>
  words.reduce(
    (mock, Status) =>
      mock.resolvesOnce({
        RequestedQuotas: [
          { Id: 'old', DesiredValue: 2, Status: 'APPROVED', Created: new Date(1) },
          { Id: 'new', DesiredValue: 4, Status: Status as 'PENDING', Created: new Date(2) },
        ],
      }),
    quotas.on(ListRequestedServiceQuotaChangeHistoryByQuotaCommand),
  );
let said: string[];
beforeEach(() => {
  vi.stubEnv('SLIPWAY_POLL_SECONDS', '0');
  quotas.reset();
  said = [];
});
const followed = () =>
  followIncreases(new ServiceQuotasClient({}), [WANTED], { out: () => undefined, err: (text) => said.push(text) });

test('ends when the limit is applied, which is later than the approval, and says each change once', async () => {
  limits(0, 0, 0, 4);
  requests('PENDING', 'PENDING', 'APPROVED');
  expect(await followed()).toEqual([]);
  expect(said).toEqual([
    'ml.p5.48xlarge for training job usage (L-C4752B3A): limit 0, needed 4; increase to 4 is PENDING',
    'ml.p5.48xlarge for training job usage (L-C4752B3A): limit 0, needed 4; increase to 4 is APPROVED',
    'ml.p5.48xlarge for training job usage (L-C4752B3A): limit 4 is applied',
  ]);
});

test.each([
  ['DENIED', 'see AWS Support for the reason'],
  ['NOT_APPROVED', 'see AWS Support for the reason'],
  ['CASE_CLOSED', 'see its support case for the reason'],
  ['INVALID_REQUEST', 'Service Quotas could not process it'],
])('fails: the request ends as %s; what was granted until then is named', async (end, why) => {
  limits(0, 1);
  requests('CASE_OPENED', end);
  expect(await followed()).toEqual([{ wanted: WANTED, why: `limit 1, needed 4; increase to 4 is ${end}: ${why}` }]);
});

test('fails: less was approved than was asked, seen by a limit that moved', async () => {
  limits(0, 0, 2);
  requests('CASE_OPENED', 'APPROVED', 'APPROVED');
  const why = 'limit 2, needed 4; increase to 4 is APPROVED, with 2 of 4 granted';
  expect(await followed()).toEqual([{ wanted: WANTED, why }]);
});

test('a limit that is raised in part while the request is open, and in full after its approval, is waited for', async () => {
  limits(0, 2, 2, 4);
  requests('CASE_OPENED', 'CASE_OPENED', 'APPROVED');
  expect(await followed()).toEqual([]);
  expect(said.at(-2)).toMatch(/limit 2, needed 4; increase to 4 is APPROVED$/);
});

test('fails: less was approved before the wait began, seen by an approval of more than an hour ago', async () => {
  const approved = (minutes: number, CaseId?: string) => ({
    RequestedQuotas: [
      { DesiredValue: 4, Status: 'APPROVED' as const, CaseId, LastUpdated: new Date(Date.now() - 60_000 * minutes) },
    ],
  });
  limits(2, 2);
  quotas
    .on(ListRequestedServiceQuotaChangeHistoryByQuotaCommand)
    .resolvesOnce(approved(50))
    .resolvesOnce(approved(70, '1234'));
  expect((await followed())[0]?.why).toBe(
    'limit 2, needed 4; increase to 4 is APPROVED (support case 1234), with 2 of 4 granted',
  );
  expect(said).toHaveLength(2);
});

test('fails: nobody has asked for the limit, or for too little', async () => {
  limits(0, 2);
  quotas.on(ListRequestedServiceQuotaChangeHistoryByQuotaCommand).resolves({ RequestedQuotas: [] });
  expect((await followed())[0]?.why).toBe('limit 0, needed 4; no increase was requested: add --request');
  quotas
    .on(ListRequestedServiceQuotaChangeHistoryByQuotaCommand)
    .resolves({ RequestedQuotas: [{ DesiredValue: 3, Status: 'PENDING' }] });
  expect((await followed())[0]?.why).toBe('limit 2, needed 4; increase to 3 is PENDING, which is not enough');
});

test('a service that does not answer for a while does not end the wait; ten rounds without an answer do', async () => {
  const history = quotas.on(ListRequestedServiceQuotaChangeHistoryByQuotaCommand).rejects(new Error('no network'));
  let rounds = 0;
  quotas.on(GetServiceQuotaCommand).callsFake(() => ({ Quota: { Value: ++rounds < 10 ? 0 : 4 } }));
  expect(await followed()).toEqual([]);
  expect(said).toEqual(['ml.p5.48xlarge for training job usage (L-C4752B3A): limit 4 is applied']);
  history.rejects(new Error('no network'));
  quotas.on(GetServiceQuotaCommand).resolves({ Quota: { Value: 0 } });
  await expect(followed()).rejects.toThrow(/^waiting for limits \(the requests remain open\): .*no network/);
  expect(quotas.commandCalls(GetServiceQuotaCommand)).toHaveLength(20);
});

test('a wait that fails ends with commands that the command line takes; regions are compared for a file alone', async () => {
  const template = {
    Resources: {
      gate: {
        Type: 'Custom::SlipwayQuotaPreflight',
        Properties: {
          needs: JSON.stringify([
            { ...WANTED, desired: undefined, needed: 4, unit: 'instances', kind: 'pool', wantedBy: 'quotas.require' },
          ]),
        },
      },
    },
  };
  mockClient(CloudFormationClient)
    .on(GetTemplateCommand)
    .resolves({ TemplateBody: JSON.stringify(template) });
  mockClient(SageMakerClient).on(ListTrainingJobsCommand).resolves({ TrainingJobSummaries: [] });
  quotas.on(GetServiceQuotaCommand).resolves({ Quota: { Value: 0 } });
  quotas.on(ListRequestedServiceQuotaChangeHistoryByQuotaCommand).resolves({
    RequestedQuotas: [{ DesiredValue: 4, Status: 'DENIED' }],
  });
  const commandsOf = async (named: string, ...more: string[]) => {
    const { code, stderr } = await runCli('quota', named, '--region', 'us-west-2', '--wait', ...more);
    expect(code).toBe(1);
    return [...stripVTControlCharacters(stderr).matchAll(/^to [^:]*: (slipway .*)$/gm)].flatMap(([, command = '']) => [
      command,
    ]);
  };
  const [again, ...others] = await commandsOf('lab');
  expect([again, others]).toEqual(['slipway quota lab --region us-west-2 --request --wait', []]);
  const file = path.join(__dirname, '../../../runs/builtin/llama3-8b-fsdp.yaml');
  const ofFile = await commandsOf(file);
  expect(ofFile.map((command) => command.split(' ')[1])).toEqual(['quota', 'preflight']);
  expect(ofFile.flatMap(callsOf).flatMap(misspelt)).toEqual([]);
  // Options change what is needed, and a shell must read them back.
  const changed = await commandsOf(
    file,
    '--set',
    'compute.instanceCount=8',
    '--set',
    'distribution.parameters.shard_degree=64',
    '--set',
    'tags={"a": "b c"}',
  );
  const options = `${file} --set compute.instanceCount=8 --set distribution.parameters.shard_degree=64 --set 'tags={"a": "b c"}'`;
  expect(changed).toEqual([
    `slipway quota ${options} --region us-west-2 --request --wait`,
    `slipway preflight ${options} --regions`,
  ]);
});
