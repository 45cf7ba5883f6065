import { DescribeLogGroupsCommand } from '@aws-sdk/client-cloudwatch-logs';
import { CreateRoleCommand, GetRoleCommand } from '@aws-sdk/client-iam';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { processesMarked } from '../../lib/sandbox/processes';
import { SANDBOX_MARKER } from '../../lib/sandbox/run-file';
import type { FaultSpec } from '../../lib/sandbox/testing';
import {
  bashJob,
  create,
  describeJob,
  finished,
  inState,
  type Lab,
  logLines,
  openLab,
  put,
  run,
  statesOf,
} from './support';

let lab: Lab;
/** ml.p5.48xlarge for training job usage. */
const P5_QUOTA = 'L-82E1C851';
const FOREVER = 'echo ready; exec sleep 600';

beforeAll(async () => {
  const time = { stopGraceSeconds: 1, startingSeconds: 0.05, downloadingSeconds: 0, secondsPerLimitSecond: 0.001 };
  lab = await openLab({ time, quotas: { [P5_QUOTA]: 8 } });
}, 120_000);

afterEach(() => lab.admin.clearFaults());
afterAll(() => lab.close());

const plan = (fault: FaultSpec) => lab.admin.fault(fault);

/** A job whose limits, at a thousandth of real time, leave it alone for a minute. */
function job(name: string, script: string, count = 1) {
  const request = bashJob(lab, name, script, count);
  request.StoppingCondition = { MaxRuntimeInSeconds: 100_000 };
  return request;
}

test('throttling refuses the stated number of calls and no more', async () => {
  await plan({ kind: 'throttling', operation: 'CreateTrainingJob', times: 2 });
  const request = job('throttled', 'true');

  await expect(create(lab, request)).rejects.toMatchObject({ name: 'ThrottlingException', message: 'Rate exceeded' });
  await expect(create(lab, request)).rejects.toMatchObject({ name: 'ThrottlingException' });
  await create(lab, request);

  expect((await finished(lab, 'throttled')).TrainingJobStatus).toBe('Completed');
});

test('an error before the commit leaves nothing, one after it leaves the job', async () => {
  await plan({ kind: 'call-error', operation: 'CreateTrainingJob', jobName: 'before' });
  await plan({ kind: 'call-error', operation: 'CreateTrainingJob', jobName: 'after', committed: true });

  await expect(create(lab, job('before', 'true'))).rejects.toMatchObject({ $metadata: { httpStatusCode: 500 } });
  await expect(create(lab, job('after', 'true'))).rejects.toMatchObject({ $metadata: { httpStatusCode: 500 } });

  await expect(describeJob(lab, 'before')).rejects.toMatchObject({ name: 'ValidationException' });
  expect((await finished(lab, 'after')).TrainingJobStatus).toBe('Completed');
});

test('a lost response drops the connection after the job was made', async () => {
  await plan({ kind: 'response-lost', operation: 'CreateTrainingJob' });

  await expect(create(lab, job('lost', 'true'))).rejects.toMatchObject({ code: 'ECONNRESET' });

  expect((await finished(lab, 'lost')).TrainingJobStatus).toBe('Completed');
  await expect(create(lab, job('lost', 'true'))).rejects.toMatchObject({ name: 'ResourceInUse' });
});

test('a capacity error keeps the job Pending and then fails it', async () => {
  await plan({ kind: 'capacity-error', jobName: 'no-room', seconds: 0.2 });

  const failed = await run(lab, job('no-room', 'true'));

  expect(statesOf(failed)).toEqual(['Starting', 'Pending', 'Failed']);
  expect(failed.FailureReason).toMatch(/^CapacityError: Unable to provision requested ML compute capacity/);
  expect(failed.BillableTimeInSeconds).toBeUndefined();
});

test('a job that waits for capacity longer than MaxPendingTime is stopped; CPU types wait on', async () => {
  await plan({ kind: 'pending', seconds: null, times: 2 });
  const accelerated = job('waits', 'true', 1);
  accelerated.ResourceConfig = { InstanceType: 'ml.p5.48xlarge', InstanceCount: 1 };
  accelerated.StoppingCondition = { MaxRuntimeInSeconds: 100_000, MaxPendingTimeInSeconds: 1800 };
  const cpu = job('waits-cpu', 'true');
  cpu.StoppingCondition = { MaxRuntimeInSeconds: 100_000, MaxPendingTimeInSeconds: 1800 };
  await create(lab, cpu);

  const stopped = await run(lab, accelerated);

  expect(statesOf(stopped)).toEqual(['Starting', 'Pending', 'Stopped']);
  expect((await describeJob(lab, 'waits-cpu')).SecondaryStatus).toBe('Pending');
});

test('capacity that is missing until its fault is removed is there then, unless another fault refuses it', async () => {
  const { id } = await plan({ kind: 'pending', jobName: 'held*', seconds: null, times: null });
  await Promise.all([create(lab, job('held', 'true')), create(lab, job('held-refused', 'true'))]);
  await Promise.all([inState(lab, 'held', 'Pending'), inState(lab, 'held-refused', 'Pending')]);
  await plan({ kind: 'capacity-error', jobName: 'held-refused' });

  await lab.admin.removeFault(id);

  expect((await finished(lab, 'held')).TrainingJobStatus).toBe('Completed');
  expect((await finished(lab, 'held-refused')).FailureReason).toMatch(/^CapacityError: /);
});

test('a state without an end lasts until its fault is removed', async () => {
  const { id } = await plan({ kind: 'state-delay', state: 'Downloading', jobName: 'inputs', seconds: null });
  await create(lab, job('inputs', 'true'));
  await inState(lab, 'inputs', 'Downloading');
  await lab.admin.fault({ kind: 'capacity-error', jobName: 'other' });
  expect((await describeJob(lab, 'inputs')).SecondaryStatus).toBe('Downloading');

  await lab.admin.removeFault(id);

  expect((await finished(lab, 'inputs')).TrainingJobStatus).toBe('Completed');
});

test('of the instance preferences the first with capacity is taken', async () => {
  await plan({ kind: 'capacity-error', instanceType: 'ml.m5.xlarge' });
  const request = job('prefers', 'true');
  request.ResourceConfig = {
    InstancePreferences: [{ InstanceType: 'ml.m5.xlarge' }, { InstanceType: 'ml.m5.2xlarge' }],
    InstanceCount: 2,
    VolumeSizeInGB: 10,
  };

  const done = await run(lab, request);

  expect(done.TrainingJobStatus).toBe('Completed');
  expect(done.ResourceConfig).toMatchObject({ SelectedInstanceType: 'ml.m5.2xlarge', SelectedInstanceCount: 2 });
});

test('an internal error fails the job, or starts it again as often as its RetryStrategy says', async () => {
  await plan({ kind: 'internal-error', jobName: 'broken', logMatches: 'ready' });
  await plan({ kind: 'internal-error', jobName: 'retried', logMatches: 'ready', times: 2 });
  const retried = job('retried', 'echo ready; sleep 0.4');
  retried.RetryStrategy = { MaximumRetryAttempts: 2 };

  const [one, two] = await Promise.all([run(lab, job('broken', FOREVER)), run(lab, retried)]);

  expect(one.FailureReason).toMatch(/^InternalServerError: /);
  const attempt = ['Starting', 'Downloading', 'Training'];
  expect(statesOf(two)).toEqual([
    ...attempt,
    'Restarting',
    ...attempt,
    'Restarting',
    ...attempt,
    'Uploading',
    'Completed',
  ]);
});

test('a spot interruption stops the job and starts it again', async () => {
  await plan({ kind: 'spot-interruption', jobName: 'spot', step: 2 });
  const request = job(
    'spot',
    `trap 'echo bye; exit 1' TERM; for i in 1 2 3; do echo 'slipway {"event":"step","step":'$i'}'; sleep 0.2; done`,
  );
  request.EnableManagedSpotTraining = true;
  request.StoppingCondition = { MaxRuntimeInSeconds: 100_000, MaxWaitTimeInSeconds: 200_000 };

  const done = await run(lab, request);

  const attempt = ['Starting', 'Downloading', 'Training'];
  expect(statesOf(done)).toEqual([...attempt, 'Interrupted', ...attempt, 'Uploading', 'Completed']);
  expect(await logLines(lab, 'spot')).toContain('algo-1: bye');
});

test('fails: a spot job that waits longer than MaxWaitTime is Stopped with MaxWaitTimeExceeded', async () => {
  await plan({ kind: 'pending', jobName: 'spot-waits', seconds: null });
  const request = job('spot-waits', 'true');
  request.EnableManagedSpotTraining = true;
  request.StoppingCondition = { MaxRuntimeInSeconds: 300, MaxWaitTimeInSeconds: 600 };

  const stopped = await run(lab, request);

  expect([stopped.TrainingJobStatus, stopped.SecondaryStatus]).toEqual(['Stopped', 'MaxWaitTimeExceeded']);
});

test('a killed instance is an internal error of the platform, a killed container an AlgorithmError', async () => {
  await plan({ kind: 'instance-killed', jobName: 'machine', host: 2, logMatches: 'ready' });
  await plan({ kind: 'instance-killed', jobName: 'container', host: 2, logMatches: 'ready', as: 'container' });

  const [machine, container] = await Promise.all([
    run(lab, job('machine', FOREVER, 2)),
    run(lab, job('container', FOREVER, 2)),
  ]);

  expect(machine.FailureReason).toMatch(/^InternalServerError: /);
  expect(container.FailureReason).toBe('AlgorithmError: , exit code: 137');
  expect(processesMarked(SANDBOX_MARKER, lab.sandbox.stateDir)).toEqual([]);
});

test('one process of an instance can be killed by its command line', async () => {
  await plan({ kind: 'instance-killed', jobName: 'rank', process: '^sleep 601', logMatches: 'ready', as: 'container' });

  const failed = await run(lab, job('rank', 'setsid sleep 601 & echo ready; wait $!; echo lost $?; exit 70'));

  expect(failed.FailureReason).toBe('AlgorithmError: , exit code: 70');
  expect(await logLines(lab, 'rank')).toEqual(['algo-1: ready', expect.stringContaining('Killed'), 'algo-1: lost 137']);
});

test('a frozen instance stands still and goes on when the fault says so', async () => {
  await plan({ kind: 'instance-frozen', jobName: 'frozen', logMatches: '[0-9]{12}', seconds: 1 });

  const done = await run(lab, job('frozen', 'for i in $(seq 10); do date +%s%N; sleep 0.1; done'));

  expect(done.TrainingJobStatus).toBe('Completed');
  const times = (await logLines(lab, 'frozen')).map((line) => Number(line.split(' ')[1]) / 1e6);
  const gaps = times.slice(1).map((at, index) => at - (times[index] ?? at));
  expect(Math.max(...gaps)).toBeGreaterThan(900);
});

test('a state can be made to last', async () => {
  await plan({ kind: 'state-delay', state: 'Downloading', seconds: 0.5 });
  const name = await create(lab, job('slow', 'true'));

  await inState(lab, name, 'Downloading');
  const done = await finished(lab, name);

  const downloading = done.SecondaryStatusTransitions?.find((t) => t.Status === 'Downloading');
  expect((downloading?.EndTime?.getTime() ?? 0) - (downloading?.StartTime?.getTime() ?? 0)).toBeGreaterThanOrEqual(500);
});

test("the service's clock may be ahead or behind, the same in every answer", async () => {
  await plan({ kind: 'clock-skew', jobName: 'behind', seconds: -600 });
  const done = await run(lab, job('behind', 'true'));
  const again = await finished(lab, 'behind');

  const behind = (Date.now() - (done.CreationTime?.getTime() ?? 0)) / 1000;
  expect(behind).toBeGreaterThan(595);
  expect(again.CreationTime).toEqual(done.CreationTime);
});

test('an internal error may come while the model is uploaded', async () => {
  await plan({ kind: 'internal-error', jobName: 'late', state: 'Uploading' });

  const failed = await run(lab, job('late', 'true'));

  expect(statesOf(failed)).toEqual(['Starting', 'Downloading', 'Training', 'Uploading', 'Failed']);
  expect(failed.FailureReason).toMatch(/^InternalServerError: /);
});

test('calls to the other services can be made to fail: of one role, one method, one path', async () => {
  await plan({ kind: 'aws-error', service: 's3', method: 'PUT', path: '/slow/', code: 'SlowDown', status: 503 });
  await plan({
    kind: 'aws-error',
    service: 's3',
    role: '^trainer$',
    method: 'PUT',
    code: 'AccessDenied',
    status: 403,
    times: null,
  });

  await expect(put(lab, 'slow/x', 'x')).rejects.toMatchObject({ name: 'SlowDown', $metadata: { httpStatusCode: 503 } });
  await put(lab, 'slow/x', 'x');
  const failed = await run(lab, job('denied', 'echo x > $SAGEMAKER_BASE_DIR/model/m'));

  expect(failed.FailureReason).toMatch(/^ClientError: Artifact upload failed: Injected by the fault plan/);
  const [slow, denied] = await lab.admin.faults();
  expect(slow).toMatchObject({
    armed: false,
    hits: [{ target: { service: 's3', method: 'PUT', path: '/lab/slow/x' } }],
  });
  expect(denied).toMatchObject({ armed: true, hits: [{ target: { role: 'trainer' } }] });
});

test('a call of JSON and of query services is refused in its own form, also after it took effect', async () => {
  await plan({ kind: 'aws-error', service: 'iam', operation: '^CreateRole$', code: 'ServiceFailure', committed: true });
  await plan({
    kind: 'aws-error',
    service: 'logs',
    operation: 'DescribeLogGroups',
    code: 'ThrottlingException',
    status: 400,
  });
  const role = new CreateRoleCommand({ RoleName: 'made', AssumeRolePolicyDocument: '{"Statement":[]}' });

  await expect(lab.iam.send(role)).rejects.toMatchObject({ name: 'ServiceFailureException' });
  await expect(lab.logs.send(new DescribeLogGroupsCommand({}))).rejects.toMatchObject({ name: 'ThrottlingException' });

  expect((await lab.iam.send(new GetRoleCommand({ RoleName: 'made' }))).Role?.RoleName).toBe('made');
  expect((await lab.logs.send(new DescribeLogGroupsCommand({}))).logGroups?.length).toBeGreaterThan(0);
});

test('the plan lists what was planned and what it struck, and forgets what is removed', async () => {
  const kept = await plan({ kind: 'throttling', operation: 'DescribeTrainingJob', jobName: 'x-*' });
  const removed = await plan({ kind: 'throttling' });
  await lab.admin.removeFault(removed.id);
  await expect(describeJob(lab, 'x-1')).rejects.toMatchObject({ name: 'ThrottlingException' });

  const [listed, ...others] = await lab.admin.faults();

  expect(others).toEqual([]);
  expect(listed).toMatchObject({
    id: kept.id,
    armed: false,
    hits: [{ target: { jobName: 'x-1', region: 'us-east-1' } }],
  });
});

test('fails: a fault that is none is refused with what it must be', async () => {
  await expect(plan({ kind: 'earthquake' } as never)).rejects.toThrow(/answered 400: .*Invalid discriminator value/s);
  await expect(plan({ kind: 'pending', seconds: -1 })).rejects.toThrow(/answered 400: .*seconds/s);
  await expect(lab.admin.removeFault('fault-0')).rejects.toThrow(/answered 404/);
});
