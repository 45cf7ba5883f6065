import {
  GetAWSDefaultServiceQuotaCommand,
  GetServiceQuotaCommand,
  ListServiceQuotasCommand,
  ServiceQuotasClient,
} from '@aws-sdk/client-service-quotas';
import { beforeEach, expect, test } from 'vitest';
import { readAppliedLimits } from '../../../lib/shared/aws/applied-limits';
import { mockClient } from '../../support/mocked-clients';

const quotas = mockClient(ServiceQuotasClient);
const client = new ServiceQuotasClient({ region: 'us-west-2' });
let paused: number[];
const pause = async (milliseconds: number) => {
  paused.push(milliseconds);
};
beforeEach(() => {
  quotas.reset();
  paused = [];
});

const page = (names: string[], NextToken?: string) => ({
  Quotas: names.map((QuotaName) => ({ QuotaName, QuotaCode: `L-${QuotaName}`, Value: 3 })),
  NextToken,
});

test('quotas without a code are found by name in one listing, which ends with the last of them', async () => {
  quotas
    .on(ListServiceQuotasCommand)
    .resolvesOnce(page(['other', 'a'], 'two'))
    .resolvesOnce(page([], 'three'))
    .resolvesOnce(page(['b'], 'four'));
  const limits = await readAppliedLimits(client, [{ name: 'a' }, { name: 'b' }], pause);
  expect(limits).toEqual(
    new Map([
      ['a', { value: 3, code: 'L-a' }],
      ['b', { value: 3, code: 'L-b' }],
    ]),
  );
  expect(quotas.commandCalls(ListServiceQuotasCommand)).toHaveLength(3);
  expect(paused).toEqual([100, 100]);
});

test('what the listing gave before it broke off is kept, the rest is unknown with the reason', async () => {
  const denied = Object.assign(new Error('slow down'), { name: 'TooManyRequestsException' });
  quotas
    .on(ListServiceQuotasCommand)
    .resolvesOnce(page(['a'], 'two'))
    .rejectsOnce(denied);
  const limits = await readAppliedLimits(client, [{ name: 'a' }, { name: 'b' }], pause);
  expect(limits.get('a')).toEqual({ value: 3, code: 'L-a' });
  expect(limits.get('b')).toEqual({ unknown: 'TooManyRequestsException: slow down' });
});

test('a name that the Region does not list is unknown; a quota with a code is read by its code', async () => {
  quotas.on(ListServiceQuotasCommand).resolves(page(['other']));
  quotas.on(GetServiceQuotaCommand, { QuotaCode: 'L-1' }).resolves({ Quota: { Value: 8 } });
  const limits = await readAppliedLimits(client, [{ name: 'a' }, { name: 'coded', code: 'L-1' }], pause);
  expect(limits.get('a')).toEqual({ unknown: 'the region has no such quota' });
  expect(limits.get('coded')).toEqual({ value: 8, code: 'L-1' });
});

test("a quota for which no value was ever applied has AWS's default, and says so; no other error is replaced by it", async () => {
  const named = (name: string) => Object.assign(new Error('no'), { name });
  const of = async (applied: string) => {
    quotas.on(GetServiceQuotaCommand).rejects(named(applied));
    return (await readAppliedLimits(client, [{ name: 'a', code: 'L-1' }], pause)).get('a');
  };
  quotas.on(GetAWSDefaultServiceQuotaCommand).resolves({ Quota: { Value: 0 } });
  expect(await of('NoSuchResourceException')).toEqual({ value: 0, code: 'L-1', isDefault: true });
  expect(await of('TooManyRequestsException')).toEqual({ unknown: 'TooManyRequestsException: no' });
  quotas.on(GetAWSDefaultServiceQuotaCommand).rejects(named('NoSuchResourceException'));
  expect(await of('NoSuchResourceException')).toMatchObject({ isAbsent: true });
});
