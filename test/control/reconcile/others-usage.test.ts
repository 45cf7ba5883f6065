import { DescribeTrainingJobCommand, ListTrainingJobsCommand, SageMakerClient } from '@aws-sdk/client-sagemaker';
import { beforeEach, describe, expect, test } from 'vitest';
import { othersUsage } from '../../../lib/control/reconcile/queue/others-usage';
import { mockClient } from '../../support/mocked-clients';

const MINUTE = 60_000;
const P4D = 'ml.p4d.24xlarge for training job usage';
const mock = mockClient(SageMakerClient);
let now = 0;
let slept = 0;
let said: unknown[] = [];
let left: number | undefined;
const newDeps = () => ({
  sagemaker: new SageMakerClient({ region: 'us-west-2' }),
  now: () => new Date(now),
  sleep: async (ms: number) => {
    slept += ms;
  },
  remainingMs: () => left ?? Number.POSITIVE_INFINITY,
  log: (...line: unknown[]) => said.push(line),
});
let deps = newDeps();
const jobs = (...names: string[]) =>
  mock
    .on(ListTrainingJobsCommand)
    .resolves({ TrainingJobSummaries: names.map((TrainingJobName) => ({ TrainingJobName })) as never });
const shape = (ResourceConfig: object, more: object = {}) =>
  mock.on(DescribeTrainingJobCommand).resolves({ ResourceConfig, ...more } as never);
const usage = async (...ours: string[]) => Object.fromEntries(await othersUsage(deps, new Set(ours)));
const calls = () => [
  mock.commandCalls(ListTrainingJobsCommand).length,
  mock.commandCalls(DescribeTrainingJobCommand).length,
];

beforeEach(() => {
  mock.reset();
  [now, slept, said, left, deps] = [10 * MINUTE, 0, [], undefined, newDeps()];
  shape({ InstanceType: 'ml.p4d.24xlarge', InstanceCount: 2 });
});

test('jobs of ours are not counted, all others are', async () => {
  jobs('ours', 'a', 'b');
  expect((await usage('ours'))[P4D]).toBe(4);
  expect(calls()).toEqual([1, 2]);
});

describe('what is known is not asked for again', () => {
  test('the list for a minute, a job as long as it lives', async () => {
    jobs('a');
    await usage();
    now += MINUTE - 1;
    await usage();
    expect(calls()).toEqual([1, 1]);
    now += 1;
    await usage();
    expect(calls()).toEqual([2, 1]);
    jobs();
    now += MINUTE;
    expect(await usage()).toEqual({});
    jobs('a');
    now += MINUTE;
    await usage();
    expect(calls()).toEqual([4, 2]);
  });

  test('but a job that was ours and is not any more', async () => {
    jobs('a');
    expect(await usage('a')).toEqual({});
    expect((await usage())[P4D]).toBe(2);
    expect(calls()).toEqual([1, 1]);
  });
});

test.each(['Completed', 'Failed', 'Stopped'])(
  'a job that is %s by now holds nothing, although the list has it',
  async (status) => {
    jobs('a', 'b');
    expect(await usage('a', 'b')).toEqual({});
    shape({ InstanceType: 'ml.p4d.24xlarge', InstanceCount: 2 }, { TrainingJobStatus: status });
    now += MINUTE / 2;
    expect((await usage('b'))[P4D]).toBeUndefined();
    shape({ InstanceType: 'ml.p4d.24xlarge', InstanceCount: 2 }, { TrainingJobStatus: 'Stopping' });
    expect((await usage())[P4D]).toBe(2);
  },
);

describe('a job holds', () => {
  const held = async (config: object, more?: object) => {
    jobs('a');
    shape(config, more);
    return usage();
  };

  test.each<[string, object, Record<string, number>]>([
    [
      'what the service chose',
      {
        InstanceType: 'ml.c5.xlarge',
        InstanceCount: 9,
        SelectedInstanceType: 'ml.p4d.24xlarge',
        SelectedInstanceCount: 1,
      },
      { [P4D]: 1 },
    ],
    [
      'all of its groups',
      {
        InstanceGroups: [
          { InstanceType: 'ml.p4d.24xlarge', InstanceCount: 1 },
          { InstanceType: 'ml.p4d.24xlarge', InstanceCount: 2 },
        ],
      },
      { [P4D]: 3 },
    ],
    [
      'its one type where the list of groups is empty',
      { InstanceGroups: [], InstanceType: 'ml.p4d.24xlarge', InstanceCount: 2 },
      { [P4D]: 2 },
    ],
  ])('%s', async (_, config, wanted) => {
    expect(await held(config)).toMatchObject(wanted);
  });

  test('spot in the pools of spot', async () => {
    const spot = await held({ InstanceType: 'ml.p4d.24xlarge', InstanceCount: 2 }, { EnableManagedSpotTraining: true });
    expect(spot).toMatchObject({ 'ml.p4d.24xlarge for spot training job usage': 2 });
    expect(spot).not.toHaveProperty([P4D]);
  });
});

test('at most a hundred unknown jobs are asked for at once, and it is said that more are left', async () => {
  const all = Array.from({ length: 101 }, (_, i) => `job-${i}`);
  jobs(...all.slice(1));
  await usage();
  expect(said).toEqual([]);
  deps = newDeps();
  jobs(...all);
  expect((await usage())[P4D]).toBe(200);
  expect(said).toEqual([['info', 'jobs of others are not all known yet', { unknown: 101 }]]);
  expect((await usage())[P4D]).toBe(202);
});

test('pages are read half a second apart, and not to the end when little time is left', async () => {
  const page = (name: string, NextToken?: string) => ({
    TrainingJobSummaries: [{ TrainingJobName: name }] as never,
    NextToken,
  });
  mock.on(ListTrainingJobsCommand).callsFake(({ NextToken }) => (NextToken ? page('b') : page('a', 'x')));
  expect((await usage())[P4D]).toBe(4);
  expect(slept).toBe(500);
  deps = newDeps();
  left = 40_000;
  expect((await usage())[P4D]).toBe(4);
  deps = newDeps();
  left = 39_999;
  expect(await usage()).toEqual({});
});
