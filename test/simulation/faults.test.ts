import { describe, expect, test, vi } from 'vitest';
import { broken, PRETRAIN, played, run, runOf } from './support';

/** A simulated day takes a second; on a busy machine several. */
vi.setConfig({ testTimeout: 120_000 });

const CAPACITY = 'CapacityError: Unable to provision requested ML compute capacity.';
const spot = (more: object = {}) => run('a', { set: { 'compute.capacity': 'spot' }, ...more });

describe('a run without faults', () => {
  test('completes in one attempt, and its times and dollars are exact', async () => {
    const result = await played({});
    const a = runOf(result);
    expect(broken(result)).toEqual([]);
    expect([a.state, a.keptSteps, a.lostSteps, a.attempts.length]).toEqual(['completed', 2160, 0, 1]);
    // Twelve minutes of start-up, six hours of steps, one minute of upload, on four instances at $63.296.
    expect(a.trainedSeconds).toBe(22_380);
    expect(a.billedUsd).toBeCloseTo((22_380 / 3600) * 4 * 63.296, 1);
    expect(a.notices.map(({ id }) => id.split('/')[0])).toEqual(['run-completed']);
  });

  test('trainsHours wins over the steps of the run file', async () => {
    expect(runOf(await played({ runs: [run('a', { trainsHours: undefined })] })).keptSteps).toBe(100);
  });
});

describe('faults of a job', () => {
  test('ends: the next attempt goes on from the newest commit', async () => {
    const a = runOf(await played({ faults: [{ at: '3h', job: 'a#1', ends: 'Failed' }] }));
    expect(a.attempts.map(({ status }) => status)).toEqual(['Failed', 'Completed']);
    // 1007 steps until then; five commits of 180 steps.
    expect([a.keptSteps, a.lostSteps]).toEqual([2160, 107]);
  });

  test('a fault on an attempt that does not live then hits nothing', async () => {
    const a = runOf(await played({ faults: [{ at: '3h', job: 'a#2', ends: 'Failed' }] }));
    expect(a.attempts.length).toBe(1);
  });

  test.each(['host', 'gpu', 'network'])('loses %s: the attempt fails and the run goes on', async (loses) => {
    const result = await played({ faults: [{ at: '3h', job: 'a#1', loses }] });
    expect(runOf(result).attempts.map(({ status }) => status)).toEqual(['Failed', 'Completed']);
    expect(broken(result)).toEqual([]);
  });

  test('loses a host: a spare one takes its place within the attempt', async () => {
    const runs = [run('a', { set: { 'compute.spareInstances': 1 } })];
    const a = runOf(await played({ runs, faults: [{ at: '3h', job: 'a#1', loses: 'host' }] }));
    expect(a.attempts.map(({ status, instances }) => [status, instances])).toEqual([['Completed', 5]]);
  });

  test('loses a checkpoint: the attempt that loads it fails, and the one before it is taken', async () => {
    const faults = [
      { at: '3h', job: 'a#1', loses: 'checkpoint', count: 2 },
      { at: '3.1h', job: 'a#1', ends: 'Failed' },
    ];
    const result = await played({ faults });
    const a = runOf(result);
    expect(a.state).toBe('completed');
    expect(a.attempts.map(({ status }) => status)).toEqual(['Failed', 'Failed', 'Failed', 'Completed']);
    expect(broken(result)).toEqual([]);
  });

  test('hangs: it is stopped and resumed, whether it beats or not', async () => {
    for (const silent of [true, false]) {
      const result = await played({ faults: [{ at: '3h', job: 'a#1', hangs: true, silent }] });
      expect(runOf(result).attempts.map(({ status }) => status)).toEqual(['Stopped', 'Completed']);
      expect(broken(result)).toEqual([]);
    }
  });

  test('is interrupted: the same job goes on from its newest commit, and the gap is not billed', async () => {
    const result = await played({ faults: [{ at: '3h', job: 'a#1', status: 'Interrupted', minutes: 25 }] });
    const a = runOf(result);
    expect(a.attempts.length).toBe(1);
    expect(a.lostSteps).toBe(107);
    // Start-up once more, and the steps since the last commit.
    expect(a.trainedSeconds).toBeCloseTo(22_380 + 720 + 1078, 0);
    expect(broken(result)).toEqual([]);
  });

  test('is interrupted while it downloads: it trains once it has instances again', async () => {
    const result = await played({ faults: [{ at: '2m', job: 'a#1', status: 'Interrupted', minutes: 60 }] });
    expect(runOf(result).trainedSeconds).toBeLessThan(22_380 + 130);
    expect(broken(result)).toEqual([]);
  });

  test('a stop takes as long as the scenario says', async () => {
    const faults = [{ job: 'a#1', stopTakesMinutes: 60 }];
    const a = runOf(await played({ faults, calls: [{ at: '2h', do: 'stop', run: 'a' }] }));
    expect(a.state).toBe('stopped');
    expect((a.attempts[0]?.endedAt ?? 0) / 3600).toBeCloseTo(3, 1);
  });

  test('is deleted: the run goes on under the next name', async () => {
    const a = runOf(await played({ faults: [{ at: '3h', deleteJob: 'a#1' }] }));
    expect(a.attempts.map(({ status }) => status)).toEqual(['Deleted', 'Completed']);
    expect(a.attempts[0]?.endedAt).toBe(10_800);
  });

  test('the name of an attempt is taken: the run fails and says so', async () => {
    const result = await played({ faults: [{ taken: 'a#1' }] });
    expect(runOf(result).state).toBe('failed');
    expect(broken(result)).toEqual([]);
  });
});

describe('capacity and quotas', () => {
  test('a job is Pending until there are instances, and starts then', async () => {
    const capacity = [{ instanceType: 'ml.p5.48xlarge', spot: false, from: '0h', to: '4h', instances: 0 }];
    const a = runOf(await played({ capacity }));
    expect(a.attempts[0]?.startedAt).toBe(14_400);
    expect(a.waitedSeconds).toBeGreaterThan(14_390);
  });

  test('the service ends a job that has waited too long, and another one is tried', async () => {
    const capacity = [{ instanceType: 'ml.p5.48xlarge', from: '0h', to: '4h', instances: 3 }];
    const a = runOf(await played({ capacity, runs: [run('a', { set: { 'limits.maxPendingSeconds': 7200 } })] }));
    expect(a.attempts[0]?.secondaryStatus).toBe('MaxPendingTimeExceeded');
  });

  test('above a quota the create is refused and the run waits for the others', async () => {
    const runs = [run('a'), run('b'), run('c')];
    const result = await played({ runs });
    expect(result.runs.map(({ state }) => state)).toEqual(['completed', 'completed', 'completed']);
    expect(Math.max(...result.runs.map(({ waitedSeconds }) => waitedSeconds))).toBeGreaterThan(6 * 3600);
    expect(broken(result)).toEqual([]);
  });

  test('jobs of others count against the quota', async () => {
    const outside = [{ at: '0h', to: '5h', instanceType: 'ml.p5.48xlarge', instances: 6 }];
    expect((runOf(await played({ outside })).attempts[0]?.createdAt ?? 0) / 3600).toBeCloseTo(5, 0);
  });

  test('a run that control refuses has the issues as its reason and breaks nothing', async () => {
    const result = await played({ limits: { 'ml.p5.48xlarge for training job usage': 2 } });
    expect(runOf(result)).toMatchObject({ state: 'refused', attempts: [] });
    expect(runOf(result).reason).toContain('quota ml.p5.48xlarge for training job usage');
    expect(broken(result)).toEqual([]);
  });

  test('limits may change with time', async () => {
    const name = 'ml.p5.48xlarge for training job usage';
    const result = await played({
      limits: {
        [name]: [
          { from: '0h', value: 4 },
          { from: '2h', value: 8 },
        ],
        'L-00C91CB5': 8,
      },
      runs: [run('a'), run('b')],
    });
    expect(Math.max(...result.runs.map(({ attempts }) => attempts[0]?.createdAt ?? 0)) / 3600).toBeCloseTo(2, 0);
  });

  test('spot is billed at its own price, and lost spot goes on', async () => {
    const result = await played({
      runs: [spot()],
      faults: [{ at: '3h', job: 'a#1', status: 'Interrupted', minutes: 10 }],
    });
    const a = runOf(result);
    expect(a.billedUsd).toBeCloseTo((a.trainedSeconds / 3600) * 4 * 24.05, 0);
    expect(broken(result)).toEqual([]);
  });

  test('no capacity: the reason of the service is capacity and no attempt is burnt', async () => {
    const a = runOf(await played({ until: '48h', faults: [{ job: 'a#1', ends: 'Failed', reason: CAPACITY }] }));
    expect(a.state).toBe('completed');
  });
});

describe('faults of calls', () => {
  test('an error of a call, for a time and for a key', async () => {
    const faults = [{ at: '2h', to: '4h', call: 's3:GetObject', key: '*/heartbeat*', error: 'AccessDenied' }];
    const result = await played({ faults });
    expect(runOf(result).attempts.length).toBe(1);
    expect(broken(result)).toEqual([]);
  });

  test('the answer of the create is lost: the job is found and adopted', async () => {
    const result = await played({ faults: [{ call: 'sagemaker:CreateTrainingJob', nth: 1, answerLost: true }] });
    expect(runOf(result).attempts.length).toBe(1);
    expect(result.calls['sagemaker:CreateTrainingJob']?.count).toBe(1);
    expect(broken(result)).toEqual([]);
  });

  test('an answer that comes too late ends the function, or the call of a client with a time-out', async () => {
    const faults = [{ at: '2h', to: '3h', call: 'sagemaker:DescribeTrainingJob', takesSeconds: 100 }];
    const result = await played({ faults });
    expect(runOf(result).state).toBe('completed');
    expect(broken(result)).toEqual([]);
  });

  test('an empty answer is no proof of anything', async () => {
    const faults = [
      { call: 'sagemaker:CreateTrainingJob', nth: 1, answerLost: true },
      { call: 'sagemaker:ListTags', nth: 1, empty: true },
    ];
    const result = await played({ faults });
    expect(runOf(result).state).toBe('completed');
    expect(broken(result)).toEqual([]);
  });

  test('reads of the service and of the index lag', async () => {
    const result = await played({ faults: [{ describeLagSeconds: 60 }, { indexLagSeconds: 30 }] });
    expect(runOf(result).attempts.length).toBe(1);
    expect(broken(result)).toEqual([]);
  });

  test('functions die between their calls: what was decided is done once', async () => {
    for (const afterEffect of [0, 1, 2, 3]) {
      const faults = [
        { kill: 'reconcile', afterEffect, times: 3 },
        { kill: 'control', afterEffect, times: 1 },
      ];
      const result = await played({ faults });
      expect([afterEffect, runOf(result).state, runOf(result).attempts.length]).toEqual([afterEffect, 'completed', 1]);
      expect(broken(result)).toEqual([]);
    }
  });

  test('state changes on the bus are lost, or come late and twice', async () => {
    for (const faults of [[{ events: 'lost' }], [{ events: 'late', minutes: 7 }]]) {
      const result = await played({ faults });
      expect(runOf(result).state).toBe('completed');
      expect(broken(result)).toEqual([]);
    }
  });

  test("the functions' clock differs from the services'", async () => {
    const result = await played({
      faults: [
        { at: '1h', clock: '-120s' },
        { at: '3h', clock: '240s' },
      ],
    });
    expect(runOf(result).attempts.length).toBe(1);
    expect(broken(result)).toEqual([]);
  });

  test('what the table holds of a run was written by an older version', async () => {
    const faults = [
      { at: '1h', stored: 'a', without: ['spec.compute.spareInstances'] },
      { at: '2h', job: 'a#1', ends: 'Failed' },
    ];
    const a = runOf(await played({ faults }));
    expect(a.attempts.map(({ instances }) => instances)).toEqual([4, 4]);
  });

  test('a rate below what the functions need throttles them', async () => {
    const result = await played({ rates: { 'ssm:GetParameter': 1 }, runs: ['a', 'b'].map((id) => run(id)) });
    expect(result.calls['ssm:GetParameter']?.throttled).toBeGreaterThan(0);
  });
});

describe('what people do', () => {
  test('a stopped run is resumed from what it saved', async () => {
    const calls = [
      { at: '3h', do: 'stop', run: 'a' },
      { at: '4h', do: 'resume', run: 'a' },
    ];
    const result = await played({ calls });
    const a = runOf(result);
    expect([a.state, a.lostSteps, a.attempts.length]).toEqual(['completed', 0, 2]);
    expect(broken(result)).toEqual([]);
  });

  test('a deploy starts its run once, also when the same properties come again', async () => {
    const calls = [
      { at: '1h', do: 'deploy', run: 'a' },
      { at: '9d', do: 'deploy', run: 'a' },
    ];
    const a = runOf(await played({ calls, until: '10d' }));
    expect([a.state, a.attempts.length]).toEqual(['completed', 1]);
    expect(a.attempts[0]?.createdAt).toBeGreaterThan(3600);
  });

  test('a run may wait for another one, by the id that the scenario gives it', async () => {
    const after = run('b', { set: { after: ['a'], 'checkpoints.startFrom': 'a' } });
    const result = await played({ runs: [run('a'), { ...after, at: '1h', trainsHours: 9 }] });
    expect((runOf(result, 'b').attempts[0]?.createdAt ?? 0) / 3600).toBeGreaterThan(6);
    expect(runOf(result, 'b').keptSteps).toBe(3240);
  });

  test('own code without checkpoints begins at 0, with managed ones at its last commit', async () => {
    const own = { name: 'own', code: { source: './train' }, compute: PRETRAIN.compute };
    const faults = [{ at: '3h', job: 'a#1', ends: 'Failed' }];
    const none = runOf(await played({ runs: [run('a', { file: own })], faults }));
    const managed = runOf(
      await played({ runs: [run('a', { file: { ...own, checkpoints: { mode: 'managed' } } })], faults }),
    );
    expect([none.state, none.lostSteps, managed.lostSteps]).toEqual(['completed', 1007, 107]);
  });
});

test.each([
  ['shorter than its five receives leaves no dead letter', { at: '119m', to: '121m' }, 0],
  ['longer than them leaves one, and the next tick goes on', { at: '119m', to: '129m' }, 1],
])('a table that refuses every call for a time %s', async (_, when, deadLetters) => {
  const fault = { ...when, call: 'dynamodb:GetItem', error: 'InternalServerError' };
  const result = await played({ faults: [fault], until: '5h' });
  expect(broken(result)).toEqual([]);
  expect(result.deadLetters).toBe(deadLetters);
});

test('answers to Describe that are lost are reported like refused ones, also while the checkpoints cannot be listed', async () => {
  const faults = [
    { at: '1h', to: '5h', call: 's3:ListObjectsV2', error: 'AccessDenied' },
    { at: '1.2h', to: '3.5h', call: 'sagemaker:DescribeTrainingJob', answerLost: true },
  ];
  const result = await played({ faults });
  expect(broken(result)).toEqual([]);
  expect(runOf(result).notices.map(({ id }) => id.split('/')[0])).toContain('job-unreadable');
});
