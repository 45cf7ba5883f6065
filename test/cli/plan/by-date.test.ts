import path from 'node:path';
import { InvokeCommand, LambdaClient } from '@aws-sdk/client-lambda';
import {
  ListTrainingPlansCommand,
  SageMakerClient,
  SearchTrainingPlanOfferingsCommand,
} from '@aws-sdk/client-sagemaker';
import { beforeEach, describe, expect, test } from 'vitest';
import { deadlineOf } from '../../../lib/cli/plan/by-date';
import { ANSWERS } from '../../../lib/core/contracts/answers';
import type { StatusAnswer } from '../../../lib/core/contracts/control';
import { historyOf } from '../../../lib/report/read/capacity-history';
import { labEnvironment } from '../../support/lab-environment';
import { mockClient } from '../../support/mocked-clients';
import { runCli } from '../../support/run-cli';

const lambda = mockClient(LambdaClient);
const sagemaker = mockClient(SageMakerClient);
const RUN = path.join(__dirname, '../../../runs/builtin/llama3-8b-fsdp.yaml');
const { environment } = labEnvironment();

const DAY = 86_400_000;
const inDays = (days: number) => new Date(Date.now() + days * DAY);
const by = inDays(30).toISOString();

const T0 = Date.UTC(2026, 10, 1);
const line = (hours: number, what: string, text = what, evidence = {}) => ({
  at: new Date(T0 + hours * 3_600_000).toISOString(),
  what,
  text,
  evidence,
});
const status = (capacity: string, instanceType = 'ml.p5.48xlarge') =>
  ({
    runId: 'r-1',
    state: 'completed',
    attempts: [
      { trainingJobName: 'lab-r-1-a001', startedAt: new Date(T0 + 2 * 3_600_000).toISOString(), instanceCount: 4 },
      { trainingJobName: 'lab-r-1-a002', startedAt: new Date(T0 + 9 * 3_600_000).toISOString(), instanceCount: 4 },
    ],
    configuration: { spec: { compute: { capacity, instanceType } } },
    timeline: [
      line(0, 'job-created', 'job lab-r-1-a001 was created'),
      line(2, 'job-status', 'Training', { secondaryStatus: 'Training' }),
      line(2, 'first-step', 'first', { step: 1 }),
      line(5, 'job-status', 'Interrupted', { secondaryStatus: 'Interrupted' }),
      line(6, 'first-step', 'again', { step: 20 }),
      line(8, 'attempt-ended'),
      line(8, 'job-created', 'job lab-r-1-a002 was created'),
      line(9, 'first-step', 'again', { step: 30 }),
      line(12, 'run-completed'),
    ],
  }) as unknown as StatusAnswer;

let history: StatusAnswer[] = [];
beforeEach(() => {
  history = [];
  sagemaker.reset();
  sagemaker.on(SearchTrainingPlanOfferingsCommand).resolves({ TrainingPlanOfferings: [] });
  sagemaker.on(ListTrainingPlansCommand).resolves({ TrainingPlanSummaries: [] });
  lambda.on(InvokeCommand).callsFake(({ Payload }) => {
    const { action } = JSON.parse(Buffer.from(Payload).toString());
    const answer = action === 'list' ? { ok: true, runs: history } : { ok: true, ...history[0] };
    return { Payload: Buffer.from(JSON.stringify(answer)) as never };
  });
});
const planBy = (...more: string[]) => runCli('plan', RUN, '--by', by, ...more);
const documentOf = async (...more: string[]) => {
  const { stdout } = await planBy('--json', ...more);
  const document = JSON.parse(stdout);
  expect(ANSWERS.offers.parse(document)).toEqual(document);
  return document;
};

describe('plan --by', () => {
  test('without an environment it offers on demand and spot, calls nothing, and says what is missing', async () => {
    const { offers, notes } = await documentOf();
    expect(offers.map(({ kind }: { kind: string }) => kind).sort()).toEqual(['on-demand', 'spot']);
    expect(notes).toEqual(['own runs and training plans: not read without --environment']);
    expect([lambda.calls().length, sagemaker.calls().length]).toEqual([0, 0]);
  });

  test('plans on offer cost their fee, own ones nothing more, and nothing is bought', async () => {
    const block = {
      InstanceType: 'ml.p5.48xlarge' as const,
      InstanceCount: 4,
      StartTime: inDays(1),
      EndTime: inDays(8),
    };
    sagemaker.on(SearchTrainingPlanOfferingsCommand).resolves({
      TrainingPlanOfferings: [
        {
          TrainingPlanOfferingId: 'tpo-1',
          TargetResources: ['training-job'],
          UpfrontFee: '20100.5',
          CurrencyCode: 'USD',
          ReservedCapacityOfferings: [block],
        },
      ],
    });
    const own = (name: string, more = {}) => ({
      TrainingPlanArn: `arn:aws:sagemaker:us-west-2:111122223333:training-plan/${name}`,
      TrainingPlanName: name,
      Status: 'Active' as const,
      TargetResources: ['training-job' as const],
      StartTime: inDays(-1),
      EndTime: inDays(20),
      AvailableInstanceCount: 4,
      ReservedCapacitySummaries: [
        {
          ReservedCapacityArn: 'x',
          InstanceType: 'ml.p5.48xlarge' as const,
          TotalInstanceCount: 4,
          Status: 'Active' as const,
        },
      ],
      ...more,
    });
    sagemaker.on(ListTrainingPlansCommand).resolves({
      TrainingPlanSummaries: [
        own('mine'),
        own('over', { Status: 'Expired' }),
        own('hyper', { TargetResources: ['hyperpod-cluster'] }),
      ],
    });
    const { offers } = await documentOf('--environment', environment);
    const found = Object.fromEntries(offers.map((o: { id?: string; kind: string }) => [o.id ?? o.kind, o]));
    expect(Object.keys(found).sort()).toEqual([
      'arn:aws:sagemaker:us-west-2:111122223333:training-plan/mine',
      'on-demand',
      'spot',
      'tpo-1',
    ]);
    expect(found['tpo-1']).toMatchObject({ usd: 20_100.5, makesDate: true });
    expect(offers[0]).toMatchObject({ kind: 'own-training-plan', usd: 0, makesDate: true });
    const asked = sagemaker.commandCalls(SearchTrainingPlanOfferingsCommand).map(({ args }) => args[0].input);
    expect(asked[0]).toMatchObject({
      InstanceType: 'ml.p5.48xlarge',
      InstanceCount: 4,
      TargetResources: ['training-job'],
    });
    expect(new Set(asked.map(({ DurationHours = 0 }) => DurationHours % 24))).toEqual(new Set([0]));
    expect(sagemaker.calls().map(({ args }) => args[0].constructor.name)).not.toContain('CreateTrainingPlanCommand');
  });

  test('own runs on the same type say what waits and interruptions are taken from', async () => {
    history = [status('spot')];
    const { offers } = await documentOf('--environment', environment);
    const basis = (kind: string) => offers.find((o: { kind: string }) => o.kind === kind).basis;
    expect(basis('spot')).toBe('1 own runs: 2 waits, 2 interruptions');
    expect(basis('on-demand')).toContain('no own run');
  });

  test('what may not be read is a note', async () => {
    const denied = Object.assign(new Error('not authorized'), { name: 'AccessDeniedException' });
    sagemaker.on(ListTrainingPlansCommand).rejects(denied);
    const { offers, notes } = await documentOf('--environment', environment);
    expect(offers).toHaveLength(2);
    expect(notes[0]).toContain('training plans: not read: listing training plans: must be permitted');
  });

  test('what the launcher refuses is a note with its reason', async () => {
    const refusal = {
      ok: false,
      issues: [{ rule: 'r', level: 'error', path: '', message: 'team: must be one of yours' }],
    };
    lambda.on(InvokeCommand).resolves({ Payload: Buffer.from(JSON.stringify(refusal)) as never });
    const { offers, notes } = await documentOf('--environment', environment);
    expect(offers).toHaveLength(2);
    expect(notes).toEqual(['own runs: not read: team: must be one of yours']);
  });

  test('people see a table that ends with nothing bought', async () => {
    const { code, stdout } = await planBy();
    expect(code).toBe(0);
    expect(stdout).toMatch(/^on demand +\d\d-\d\d \d\d:\d\d/m);
    expect(stdout.trim().split('\n').at(-1)).toBe('nothing was purchased');
  });

  test('fails: a run without an end', async () => {
    const { code, stdout } = await planBy('--set', 'training.totalTokens=null', '--json');
    expect(code).toBe(1);
    expect(JSON.parse(stdout).issues[0].message).toContain('training');
  });

  test.each(['soon', '2020-01-01', '2999-01-01'])('fails: --by %s', async (date) => {
    const { code, stderr } = await runCli('plan', RUN, '--by', date);
    expect(code).toBe(2);
    expect(stderr).toContain(`--by: must be a date of the next 366 days`);
  });
});

test('a bare date is its end', () => {
  const now = Date.UTC(2026, 10, 22);
  expect(new Date(deadlineOf('2026-12-01', now)).toISOString()).toBe('2026-12-01T23:59:59.000Z');
  expect(new Date(deadlineOf('2026-12-01T18:00Z', now)).toISOString()).toBe('2026-12-01T18:00:00.000Z');
});

test('history is of one type and one kind of capacity: waits, interruptions, hours of training', () => {
  const found = historyOf(
    [status('spot'), status('on-demand', 'ml.g5.xlarge'), status('training-plan')],
    'ml.p5.48xlarge',
  );
  expect(Object.keys(found)).toEqual(['spot']);
  expect(found.spot).toMatchObject({ runs: 1, waitsHours: [2, 1], interruptions: 2 });
  expect(found.spot?.instanceHours).toBeGreaterThan(4 * 5);
  expect(found.spot?.instanceHours).toBeLessThan(4 * 12);
});
