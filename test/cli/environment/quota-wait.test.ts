import {
  GetServiceQuotaCommand,
  ListRequestedServiceQuotaChangeHistoryByQuotaCommand,
  ServiceQuotasClient,
} from '@aws-sdk/client-service-quotas';
import { beforeEach, expect, test, vi } from 'vitest';
import { followIncreases } from '../../../lib/cli/environment/quota-wait';
import { mockClient } from '../../support/mocked-clients';

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
    'L-C4752B3A: limit 0, needed 4; increase to 4 is PENDING',
    'L-C4752B3A: limit 0, needed 4; increase to 4 is APPROVED',
    'L-C4752B3A: limit 4 is applied',
  ]);
});

test.each(['DENIED', 'CASE_CLOSED', 'NOT_APPROVED', 'INVALID_REQUEST'])(
  'fails: the request ends as %s',
  async (end) => {
    limits(0, 0);
    requests('CASE_OPENED', end);
    expect(await followed()).toEqual([{ wanted: WANTED, why: `limit 0, needed 4; increase to 4 is ${end}` }]);
  },
);

test('fails: nobody has asked for the limit, or for too little', async () => {
  limits(0, 2);
  quotas.on(ListRequestedServiceQuotaChangeHistoryByQuotaCommand).resolves({ RequestedQuotas: [] });
  expect((await followed())[0]?.why).toBe('limit 0, needed 4; no increase was requested: add --request');
  quotas
    .on(ListRequestedServiceQuotaChangeHistoryByQuotaCommand)
    .resolves({ RequestedQuotas: [{ DesiredValue: 3, Status: 'PENDING' }] });
  expect((await followed())[0]?.why).toBe('limit 2, needed 4; increase to 3 is PENDING, which is too little');
});

test('a service that does not answer for a while does not end the wait; ten rounds without an answer do', async () => {
  const history = quotas.on(ListRequestedServiceQuotaChangeHistoryByQuotaCommand).rejects(new Error('no network'));
  let rounds = 0;
  quotas.on(GetServiceQuotaCommand).callsFake(() => ({ Quota: { Value: ++rounds < 10 ? 0 : 4 } }));
  expect(await followed()).toEqual([]);
  expect(said).toEqual(['L-C4752B3A: limit 4 is applied']);
  history.rejects(new Error('no network'));
  quotas.on(GetServiceQuotaCommand).resolves({ Quota: { Value: 0 } });
  await expect(followed()).rejects.toThrow(/^waiting for limits, which ends no request: .*no network/);
  expect(quotas.commandCalls(GetServiceQuotaCommand)).toHaveLength(20);
});
