import {
  GetAWSDefaultServiceQuotaCommand,
  GetServiceQuotaCommand,
  ListRequestedServiceQuotaChangeHistoryByQuotaCommand,
  ListServiceQuotasCommand,
  paginateListServiceQuotas,
  RequestServiceQuotaIncreaseCommand,
} from '@aws-sdk/client-service-quotas';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { GENERAL_QUOTAS, INSTANCE_QUOTA_CODES } from '../../lib/core/catalog/quotas';
import { type Lab, openLab } from './support';

const P5 = { ServiceCode: 'sagemaker', QuotaCode: 'L-82E1C851' };
let lab: Lab;

beforeAll(async () => {
  lab = await openLab({ quotas: { 'L-0DA2E7B0': 7 } });
}, 120_000);

afterAll(() => lab.close());

test('a quota has its name, code and applied value, and the default beside it', async () => {
  const raised = { ServiceCode: 'sagemaker', QuotaCode: 'L-0DA2E7B0' };

  const { Quota } = await lab.quotas.send(new GetServiceQuotaCommand(raised));
  const fallback = await lab.quotas.send(new GetAWSDefaultServiceQuotaCommand(raised));

  expect(Quota).toMatchObject({
    ...raised,
    QuotaName: 'ml.g6e.48xlarge for training job usage',
    Value: 7,
    Adjustable: true,
  });
  expect(fallback.Quota?.Value).toBe(0);
});

test('the list pages through every row once', async () => {
  const codes: string[] = [];
  for await (const page of paginateListServiceQuotas(
    { client: lab.quotas },
    { ServiceCode: 'sagemaker', MaxResults: 100 },
  )) {
    expect(page.Quotas?.length).toBeLessThanOrEqual(100);
    codes.push(...(page.Quotas ?? []).map((quota) => quota.QuotaCode ?? ''));
  }

  const known = Object.values(INSTANCE_QUOTA_CODES).flatMap((byUsage) => Object.values(byUsage));
  expect(codes.sort()).toEqual([...known, ...Object.keys(GENERAL_QUOTAS)].sort());
});

test('fails: an unknown code or service, a row the Region does not have', async () => {
  await lab.admin.setQuota('us-east-1', 'L-9EF527CA', 1, 'reserved');
  await lab.admin.setQuota('us-east-1', 'L-9EF527CA', null);
  const ask = (input: { ServiceCode: string; QuotaCode: string }) => lab.quotas.send(new GetServiceQuotaCommand(input));

  await expect(ask({ ...P5, QuotaCode: 'L-00000000' })).rejects.toMatchObject({ name: 'NoSuchResourceException' });
  await expect(ask({ ...P5, ServiceCode: 'ec2' })).rejects.toMatchObject({ name: 'NoSuchResourceException' });
  await expect(ask({ ...P5, QuotaCode: 'L-9EF527CA' })).rejects.toMatchObject({ name: 'NoSuchResourceException' });
});

test('an increase is filed once, waits, and applies when it is approved', async () => {
  const file = (DesiredValue: number) =>
    lab.quotas.send(new RequestServiceQuotaIncreaseCommand({ ...P5, DesiredValue }));
  await expect(file(0)).rejects.toMatchObject({ name: 'IllegalArgumentException' });
  const { RequestedQuota } = await file(16);
  await expect(file(32)).rejects.toMatchObject({ name: 'ResourceAlreadyExistsException' });
  expect(RequestedQuota).toMatchObject({ ...P5, DesiredValue: 16, Status: 'PENDING' });

  expect(await lab.admin.decideIncreases('us-east-1')).toMatchObject([{ status: 'APPROVED' }]);

  const { Quota } = await lab.quotas.send(new GetServiceQuotaCommand(P5));
  const history = await lab.quotas.send(new ListRequestedServiceQuotaChangeHistoryByQuotaCommand(P5));
  expect(Quota?.Value).toBe(16);
  expect(history.RequestedQuotas).toMatchObject([{ Id: RequestedQuota?.Id, Status: 'APPROVED' }]);
});

test('a denied increase changes nothing and a new one may be filed', async () => {
  const quota = { ServiceCode: 'sagemaker', QuotaCode: 'L-1E48384D' };
  await lab.quotas.send(new RequestServiceQuotaIncreaseCommand({ ...quota, DesiredValue: 4 }));
  await lab.admin.decideIncreases('us-east-1', 'DENIED', quota.QuotaCode);

  expect((await lab.quotas.send(new GetServiceQuotaCommand(quota))).Quota?.Value).toBe(0);
  const again = await lab.quotas.send(new RequestServiceQuotaIncreaseCommand({ ...quota, DesiredValue: 4 }));
  expect(again.RequestedQuota?.Status).toBe('PENDING');
});

test('throttling can be planned for these calls too', async () => {
  await lab.admin.fault({ kind: 'throttling', operation: 'ListServiceQuotas' });

  await expect(lab.quotas.send(new ListServiceQuotasCommand({ ServiceCode: 'sagemaker' }))).rejects.toMatchObject({
    name: 'TooManyRequestsException',
  });
});
