import {
  GetServiceQuotaCommand,
  ListRequestedServiceQuotaChangeHistoryByQuotaCommand,
  ListServiceQuotasCommand,
  RequestServiceQuotaIncreaseCommand,
  ServiceQuotasClient,
} from '@aws-sdk/client-service-quotas';
import { beforeEach, describe, expect, test } from 'vitest';
import { onEvent, preflightDeps } from '../../../lib/control/quota-preflight';
import type { QuotaNeed } from '../../../lib/core/quota';
import { resourceEvents } from '../../support/custom-resource-events';
import { mockClient } from '../../support/mocked-clients';

const quotas = mockClient(ServiceQuotasClient);
let slept: number[];
let logged: string[];
const deps = () => ({
  quotas: new ServiceQuotasClient({ region: 'us-west-2' }),
  region: 'us-west-2',
  clock: {
    now: () => Date.UTC(2026, 10, 21),
    sleep: async (ms: number) => {
      slept.push(ms);
    },
  },
  log: (message: string) => {
    logged.push(message);
  },
});

const need = (code: string | undefined, name: string, needed: number): QuotaNeed => ({
  code,
  name,
  needed,
  unit: 'instances',
  kind: 'pool',
  wantedBy: 'quotas.require[0]',
});
const P4D = need('L-09B4A649', 'ml.p4d.24xlarge for training job usage', 64);
const TOTAL = need('L-00C91CB5', 'Number of instances across all training jobs', 64);
const events = (needs: QuotaNeed[], more: Record<string, string> = {}) =>
  resourceEvents('Custom::SlipwayQuotaPreflight', {
    environment: 'research',
    needs: JSON.stringify(needs),
    enforce: 'fail',
    requestIncrease: 'false',
    ...more,
  });
const applied = (code: string, Value: number) =>
  quotas.on(GetServiceQuotaCommand, { ServiceCode: 'sagemaker', QuotaCode: code }).resolves({ Quota: { Value } });

beforeEach(() => {
  quotas.reset();
  slept = [];
  logged = [];
});

describe('create', () => {
  test('with enough of everything it says so, and when it will look again', async () => {
    applied('L-09B4A649', 64);
    applied('L-00C91CB5', 100);
    expect(await onEvent(deps(), events([P4D, TOTAL]).create())).toEqual({
      PhysicalResourceId: 'quota-preflight-research',
      Data: {
        Summary:
          '2 enough, 0 short, 0 unknown at 2026-11-21T00:00:00.000Z; a deploy checks again only when the needs change, slipway preflight at any time',
      },
    });
    expect(quotas.commandCalls(GetServiceQuotaCommand)).toHaveLength(2);
  });

  test('a short quota stops it, with name, code, limit, need and the command that asks for more', async () => {
    applied('L-09B4A649', 0);
    applied('L-00C91CB5', 100);
    await expect(onEvent(deps(), events([P4D, TOTAL]).create())).rejects.toThrow(
      'quotas: must cover what environment research needs in us-west-2, got 1 too small: ' +
        'ml.p4d.24xlarge for training job usage (L-09B4A649): limit 0, needed 64; request the increases: ' +
        'aws service-quotas request-service-quota-increase --service-code sagemaker --quota-code L-09B4A649 --desired-value 64 --region us-west-2 ' +
        '(slipway quota with the environment file of this deploy shows all of them), then deploy again',
    );
    expect(logged[0]).toMatch(/^quota +code +limit/);
  });

  test('the reason names the first five shortfalls, the log all of them', async () => {
    const needs = Array.from({ length: 7 }, (_, i) => need(`L-${i}`, `quota ${i}`, 5));
    quotas.on(GetServiceQuotaCommand).resolves({ Quota: { Value: 1 } });
    await expect(onEvent(deps(), events(needs).create())).rejects.toThrow(
      /got 7 too small: quota 0 .*quota 4 \(L-4\): limit 1, needed 5; 2 more in the log; /,
    );
    expect(logged.filter((line) => line.startsWith('quota '))).toHaveLength(8);
  });

  test('enforce: warn logs the shortfall and goes on', async () => {
    applied('L-09B4A649', 0);
    const answer = await onEvent(deps(), events([P4D], { enforce: 'warn' }).create());
    expect(answer.Data?.Summary).toMatch(/^0 enough, 1 short/);
    expect(logged.at(-1)).toMatch(/^aws service-quotas request-service-quota-increase/);
  });

  test('enforce: off asks for nothing', async () => {
    const answer = await onEvent(deps(), events([P4D], { enforce: 'off' }).create());
    expect(answer.Data).toEqual({ Summary: 'not checked: quotas.enforce is off' });
    expect(quotas.calls()).toHaveLength(0);
  });

  test('an environment that names no instances has nothing to check', async () => {
    const answer = await onEvent(deps(), events([]).create());
    expect(answer.Data).toEqual({ Summary: 'not checked: the environment names no instances' });
    expect(quotas.calls()).toHaveLength(0);
  });

  test('a limit that cannot be read is unknown, never zero, and does not stop the deploy', async () => {
    const denied = Object.assign(new Error('not authorized'), { name: 'AccessDeniedException' });
    quotas.on(GetServiceQuotaCommand).rejects(denied);
    const answer = await onEvent(deps(), events([P4D]).create());
    expect(answer.Data?.Summary).toMatch(/^0 enough, 0 short, 1 unknown/);
    expect(logged.join('\n')).toContain('unknown: servicequotas:GetServiceQuota is not permitted (not authorized');
  });

  test('at most five reads a second', async () => {
    const needs = Array.from({ length: 6 }, (_, i) => need(`L-${i}`, `quota ${i}`, 1));
    quotas.on(GetServiceQuotaCommand).resolves({ Quota: { Value: 1 } });
    await onEvent(deps(), events(needs).create());
    expect(slept).toEqual([1000]);
  });

  test('a code that the catalog does not know is found by name, over pages and past short ones', async () => {
    const trn2 = need(undefined, 'ml.trn2.48xlarge for training job usage', 2);
    quotas
      .on(ListServiceQuotasCommand)
      .resolvesOnce({ Quotas: [], NextToken: 'more' })
      .resolvesOnce({ Quotas: [{ QuotaName: trn2.name, QuotaCode: 'L-NEW', Value: 1 }], NextToken: 'rest' });
    await expect(onEvent(deps(), events([trn2]).create())).rejects.toThrow(
      /48xlarge for training job usage \(L-NEW\): limit 1, needed 2; .* --quota-code L-NEW --desired-value 2 /,
    );
    expect(quotas.commandCalls(ListServiceQuotasCommand).map((c) => c.args[0].input.NextToken)).toEqual([
      undefined,
      'more',
    ]);
  });

  test('a name that the Region does not list stays unknown', async () => {
    quotas.on(ListServiceQuotasCommand).resolves({ Quotas: [] });
    const answer = await onEvent(deps(), events([need(undefined, 'nowhere', 2)]).create());
    expect(answer.Data?.Summary).toMatch(/^0 enough, 0 short, 1 unknown/);
  });
});

describe('requestIncrease', () => {
  const asking = (needs: QuotaNeed[]) => events(needs, { requestIncrease: 'true' }).create();
  beforeEach(() => {
    quotas.on(GetServiceQuotaCommand).resolves({ Quota: { Value: 0 } });
    quotas.on(ListRequestedServiceQuotaChangeHistoryByQuotaCommand).resolves({ RequestedQuotas: [] });
    quotas.on(RequestServiceQuotaIncreaseCommand).resolves({ RequestedQuota: { Id: 'r1', Status: 'PENDING' } });
  });

  test('files one request per short quota, and the refusal says so', async () => {
    await expect(onEvent(deps(), asking([P4D, TOTAL]))).rejects.toThrow(
      'requests: ml.p4d.24xlarge for training job usage (L-09B4A649): 64 requested (r1, PENDING)',
    );
    expect(quotas.commandCalls(RequestServiceQuotaIncreaseCommand).map((c) => c.args[0].input)).toEqual([
      { ServiceCode: 'sagemaker', QuotaCode: 'L-09B4A649', DesiredValue: 64 },
      { ServiceCode: 'sagemaker', QuotaCode: 'L-00C91CB5', DesiredValue: 64 },
    ]);
  });

  test('an open request is not filed again', async () => {
    quotas
      .on(ListRequestedServiceQuotaChangeHistoryByQuotaCommand)
      .resolves({ RequestedQuotas: [{ Id: 'r0', Status: 'CASE_OPENED', DesiredValue: 80 }] });
    await expect(onEvent(deps(), asking([P4D]))).rejects.toThrow('80 already requested (r0, CASE_OPENED)');
    expect(quotas.commandCalls(RequestServiceQuotaIncreaseCommand)).toHaveLength(0);
  });

  test('goes on to the next quota after any other failure, at the pace that the service answers', async () => {
    const failed = Object.assign(new Error('x'), { name: 'InternalFailure' });
    quotas.on(RequestServiceQuotaIncreaseCommand).rejects(failed);
    slept = [];
    await expect(onEvent(deps(), asking([P4D, TOTAL]))).rejects.toThrow(
      `${TOTAL.name} (L-00C91CB5): not requested, InternalFailure: x`,
    );
    expect(quotas.commandCalls(RequestServiceQuotaIncreaseCommand)).toHaveLength(2);
    expect(slept.filter((ms) => ms === 250).length).toBeGreaterThanOrEqual(2);
  });

  test("stops when the account's allowance of requests is used up", async () => {
    const full = Object.assign(new Error('20 active requests'), { name: 'QuotaExceededException' });
    quotas.on(RequestServiceQuotaIncreaseCommand).rejects(full);
    await expect(onEvent(deps(), asking([P4D, TOTAL]))).rejects.toThrow('not requested, QuotaExceededException');
    expect(quotas.commandCalls(RequestServiceQuotaIncreaseCommand)).toHaveLength(1);
  });
});

test('update checks the new needs', async () => {
  applied('L-09B4A649', 10);
  await expect(onEvent(deps(), events([P4D]).update())).rejects.toThrow(/limit 10, needed 64/);
});

test('delete does nothing and keeps the id', async () => {
  expect(await onEvent(deps(), events([P4D]).delete())).toEqual({ PhysicalResourceId: 'physical-1' });
  expect(quotas.calls()).toHaveLength(0);
});

test('fails: malformed properties are named, all at once', async () => {
  await expect(onEvent(deps(), events([], { needs: '{', enforce: 'maybe' }).create())).rejects.toThrow(
    /^Custom::SlipwayQuotaPreflight Resource: needs: must contain .*enforce: /s,
  );
});

test('fails: without AWS_REGION the function says which variable is missing', () => {
  expect(() => preflightDeps({})).toThrow('environment variable AWS_REGION is not set');
});
