import {
  ListRequestedServiceQuotaChangeHistoryByQuotaCommand,
  RequestServiceQuotaIncreaseCommand,
  ServiceQuotasClient,
} from '@aws-sdk/client-service-quotas';
import { beforeEach, expect, test } from 'vitest';
import { findOpenRequest, requestIncrease } from '../../../lib/shared/aws/quota-increase';
import { mockClient } from '../../support/mocked-clients';

const mock = mockClient(ServiceQuotasClient);
const client = new ServiceQuotasClient({ region: 'us-west-2' });
const request = (Id: string, day: number, Status: 'CASE_CLOSED' | 'PENDING') => ({
  ...{ Id, Status, DesiredValue: day },
  Created: new Date(Date.UTC(2026, 10, day)),
});

beforeEach(() => {
  mock.reset();
  const pages = [
    [request('a', 1, 'CASE_CLOSED'), request('b', 2, 'CASE_CLOSED')],
    [],
    [request('c', 9, 'PENDING'), request('d', 3, 'CASE_CLOSED')],
  ];
  mock.on(ListRequestedServiceQuotaChangeHistoryByQuotaCommand).callsFake(({ NextToken }) => {
    const page = Number(NextToken ?? 0);
    return { RequestedQuotas: pages[page], ...(page + 1 < pages.length && { NextToken: String(page + 1) }) };
  });
});

test('the open request is found on whichever page it is', async () => {
  expect(await findOpenRequest(client, 'L-1')).toMatchObject({ id: 'c', desired: 9 });
  const asked = mock
    .commandCalls(ListRequestedServiceQuotaChangeHistoryByQuotaCommand)
    .map(({ args }) => args[0].input);
  expect(asked[0]).toMatchObject({ ServiceCode: 'sagemaker', QuotaCode: 'L-1' });
  expect(asked).toHaveLength(3);
});

test('an increase is not asked for again while a request of the last page is open', async () => {
  expect(await requestIncrease(client, 'L-1', 20)).toEqual({
    code: 'L-1',
    desired: 9,
    state: 'open',
    detail: 'PENDING',
  });
  expect(mock.commandCalls(RequestServiceQuotaIncreaseCommand)).toEqual([]);
});
