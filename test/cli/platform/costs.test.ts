import { CostExplorerClient, GetCostAndUsageCommand } from '@aws-sdk/client-cost-explorer';
import { InvokeCommand, LambdaClient } from '@aws-sdk/client-lambda';
import { GetParameterCommand, SSMClient } from '@aws-sdk/client-ssm';
import { beforeEach, describe, expect, test } from 'vitest';
import { monthOf } from '../../../lib/cli/platform/costs';
import { gpusIn, spentIn } from '../../../lib/report/team/team-report';
import { mockClient } from '../../support/mocked-clients';
import { runCli } from '../../support/run-cli';
import { DESCRIPTOR } from '../../support/runs';

const parameters = mockClient(SSMClient);
const functions = mockClient(LambdaClient);
const explorer = mockClient(CostExplorerClient);

const attempt = (startedAt: string, endedAt: string, instanceCount = 1) => ({
  trainingJobName: 'j',
  status: 'Completed',
  secondaryStatus: 'Completed',
  firstStep: 1,
  lastStep: 2,
  reason: '',
  startedAt,
  endedAt,
  instanceCount,
});
/** Half of it lies in November. */
const ATTEMPT = { ...attempt('2026-10-31T18:00:00Z', '2026-11-01T06:00:00Z'), gpuHours: 96 };
const group = (team: string, service: string, usd: number) => ({
  Keys: [`slipway:team$${team}`, service],
  Metrics: { UnblendedCost: { Amount: String(usd), Unit: 'USD' } },
});

beforeEach(() => {
  for (const mock of [parameters, functions, explorer]) mock.reset();
  parameters
    .on(GetParameterCommand, { Name: '/slipway/environments/lab' })
    .resolves({ Parameter: { Value: 'nlp,speech' } });
  for (const team of ['nlp', 'speech']) {
    const descriptor = {
      ...DESCRIPTOR,
      name: 'lab',
      team,
      region: 'us-west-2',
      controlAliasArn: `arn:aws:lambda:us-west-2:111122223333:function:slipway-lab-control:${team}`,
    };
    parameters
      .on(GetParameterCommand, { Name: `/slipway/environments/lab/${team}` })
      .resolves({ Parameter: { Value: JSON.stringify(descriptor) } });
  }
  functions.on(InvokeCommand).callsFake(({ FunctionName }) => {
    const runs = FunctionName.endsWith(':nlp') ? [{ runId: 'a', attempt: 1, spendUsd: 100, attempts: [ATTEMPT] }] : [];
    return { Payload: new TextEncoder().encode(JSON.stringify({ ok: true, runs })) };
  });
  explorer.on(GetCostAndUsageCommand).resolves({
    ResultsByTime: [
      {
        Groups: [
          group('nlp', 'Amazon SageMaker', 40),
          group('nlp', 'Amazon Simple Storage Service', 5),
          group('', 'AWS Lambda', 2.5),
        ],
      },
    ],
  });
});

const costs = (...args: string[]) => runCli('team', 'lab', '--costs', '--region', 'us-west-2', '--json', ...args);

test('the ledger of the month beside Cost Explorer, by team', async () => {
  const { code, stdout } = await costs('--month', '2026-11');
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({
    month: '2026-11',
    teams: [
      { team: 'nlp', ledgerUsd: 50, sageMakerUsd: 40, otherUsd: 5, differenceUsd: 10, gpuHours: 48 },
      { team: 'speech', ledgerUsd: 0, sageMakerUsd: 0, otherUsd: 0, differenceUsd: 0, gpuHours: null },
    ],
    notes: expect.arrayContaining([expect.stringContaining('2.50 USD have the tag of the environment but of no team')]),
  });
  expect(explorer.commandCalls(GetCostAndUsageCommand)[0]?.args[0].input).toMatchObject({
    TimePeriod: { Start: '2026-11-01', End: '2026-12-01' },
    Filter: {
      And: [
        { Tags: { Key: 'slipway:environment', Values: ['lab'] } },
        { Dimensions: { Key: 'REGION', Values: ['us-west-2'] } },
      ],
    },
  });
});

test('one team, and a tag that nobody has activated', async () => {
  explorer.on(GetCostAndUsageCommand).resolves({ ResultsByTime: [{ Groups: [] }] });
  const { teams, notes } = JSON.parse((await costs('--team', 'speech', '--month', '2026-10')).stdout);
  expect(teams.map(({ team }: { team: string }) => team)).toEqual(['speech']);
  expect(notes.join()).toContain('activate slipway:environment and slipway:team as cost allocation tags');
});

describe('a run over two months', () => {
  const run = {
    spendUsd: 90,
    attempts: [
      attempt('2026-10-31T23:00:00Z', '2026-11-01T01:00:00Z', 1),
      attempt('2026-11-02T00:00:00Z', '2026-11-02T01:00:00Z', 4),
    ],
  };
  test('divides by instance-hours, and the parts are the whole', () => {
    const months = ['2026-10', '2026-11'].map((name) =>
      spentIn(monthOf(name, new Date('2026-12-01')), run, Date.UTC(2026, 11, 1)),
    );
    expect(months).toEqual([15, 75]);
  });
});

test('GPU hours of the attempts of the month, each by its share of time, beside how busy the GPUs were', () => {
  const run = {
    attempts: [
      { ...attempt('2026-10-31T23:00:00Z', '2026-11-01T03:00:00Z'), gpuHours: 32, gpuUtilizationPercent: 50 },
      { ...attempt('2026-11-02T00:00:00Z', '2026-11-02T01:00:00Z'), gpuHours: 8, gpuUtilizationPercent: 90 },
      { ...attempt('2026-11-03T00:00:00Z', '2026-11-03T01:00:00Z'), gpuHours: 8 },
    ],
  };
  const november = gpusIn(monthOf('2026-11', new Date('2026-12-01')), run, Date.UTC(2026, 11, 1));
  expect(november).toEqual({ gpuHours: 24 + 8 + 8, gpuUtilizationPercent: (24 * 50 + 8 * 90) / 32 });
  const older = { attempts: [attempt('2026-11-02T00:00:00Z', '2026-11-02T01:00:00Z')] };
  expect(gpusIn(monthOf('2026-11', new Date('2026-12-01')), older, Date.UTC(2026, 11, 1))).toEqual({
    gpuHours: null,
    gpuUtilizationPercent: null,
  });
});

describe('wrong usage is exit 2', () => {
  test.each([
    [['--month', '2026-13'], /--month: must be the current or a past month/],
    [['--month', '2099-01'], /--month: must be the current or a past month/],
    [['--team', 'none'], /lab: must be an environment of us-west-2 with team none that you may read/],
  ])('fails: %j', async (args, message) => {
    const { code, stderr } = await runCli('team', 'lab', '--costs', '--region', 'us-west-2', ...args);
    expect([code, stderr]).toEqual([2, expect.stringMatching(message)]);
  });

  test('fails: Cost Explorer refuses, exit 3', async () => {
    explorer
      .on(GetCostAndUsageCommand)
      .rejects(Object.assign(new Error('not enabled'), { name: 'AccessDeniedException' }));
    const { code, stderr } = await runCli('team', 'lab', '--costs', '--region', 'us-west-2');
    expect([code, stderr]).toEqual([
      3,
      expect.stringContaining('reading Cost Explorer: must be permitted, got not enabled'),
    ]);
  });
});
