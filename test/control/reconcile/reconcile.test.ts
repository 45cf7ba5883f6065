import { ListObjectsV2Command, PutObjectTaggingCommand } from '@aws-sdk/client-s3';
import { DescribeTrainingJobCommand, StopTrainingJobCommand } from '@aws-sdk/client-sagemaker';
import { PublishCommand } from '@aws-sdk/client-sns';
import { ChangeMessageVisibilityCommand } from '@aws-sdk/client-sqs';
import { beforeEach, describe, expect, test } from 'vitest';
import { reconcileDeps } from '../../../lib/control/reconcile';
import { onEvent, runIdOf } from '../../../lib/control/reconcile/reconcile';
import { serviceError } from '../support/fake-sagemaker';
import { type FakeWorld, fakeWorld, MINUTE, RUN_FILE } from '../support/fake-world';

let world: FakeWorld;
beforeEach(() => {
  world = fakeWorld();
});
const nameOf = (runId: string, attempt = 1) => `research-${runId}-a00${attempt}`;
const stateOf = async (runId: string) => (await world.store.find(runId))?.state;

describe('launch', () => {
  test('queue, intent, job.json and one CreateTrainingJob of lib/core/job', async () => {
    const runId = await world.launch();
    expect(runId).toBe('pretrain-261121120000');
    const { request } = world.sagemaker.job(nameOf(runId));
    expect(request.RoleArn).toBe('arn:aws:iam::111122223333:role/slipway-research-nlp-execution');
    expect(world.jobFile(runId, 1)).toMatchObject({ attempt: 1, team: 'nlp', checkpoints: { resumeFrom: '' } });
    expect(await stateOf(runId)).toBe('pending');
    expect(world.announced).toEqual(['submitting', 'pending']);
  });

  test('a lost answer is adopted: one job, one attempt', async () => {
    world.sagemaker.failCreate('lose-after');
    const runId = await world.launch();
    const record = await world.store.find(runId);
    expect(record?.attempt).toMatchObject({ number: 1, phase: 'created' });
    expect(world.sagemaker.calls.create).toBe(1);
    expect((await world.store.timeline(runId)).map((e) => e.what)).toContain('job-adopted');
  });

  test('a create that never arrived is made again under the same name within seconds', async () => {
    world.sagemaker.failCreate('refuse-before', 'refuse-before');
    const before = world.now();
    const runId = await world.launch();
    expect([...world.sagemaker.jobs.keys()]).toEqual([nameOf(runId)]);
    expect(world.now() - before).toBeLessThan(60_000);
  });

  test('a create that never arrives is left to the next tick after three pauses', async () => {
    world.sagemaker.failCreate(...Array(4).fill('refuse-before'));
    const runId = await world.launch();
    expect(world.sagemaker.calls.create).toBe(4);
    await world.tick();
    expect([...world.sagemaker.jobs.keys()]).toEqual([nameOf(runId)]);
  });

  test.each([
    ['ThrottlingException', 400],
    ['InternalFailure', 500],
  ])('%s is survived with one job', async (name, status) => {
    world.sagemaker.failCreate({ error: serviceError(name, 'Rate exceeded', status) });
    const runId = await world.launch();
    await world.tick();
    expect([...world.sagemaker.jobs.keys()]).toEqual([nameOf(runId)]);
  });

  test('quota at create sends the run back to the queue, and it starts later under the same name', async () => {
    world.sagemaker.failCreate({ error: serviceError('ResourceLimitExceeded', 'account-level limit is 0', 400) });
    const runId = await world.launch();
    expect(await world.store.find(runId)).toMatchObject({ state: 'queued', admitted: false, budgets: { failures: 0 } });
    for (let i = 0; i < 3; i++) await world.tick();
    expect([...world.sagemaker.jobs.keys()]).toEqual([nameOf(runId)]);
  });

  test('fails: AccessDenied at create needs a person and is not repeated', async () => {
    world.sagemaker.failCreate({
      error: serviceError('AccessDeniedException', 'not authorized to perform: iam:PassRole', 400),
    });
    const runId = await world.launch();
    await world.tick();
    expect(await stateOf(runId)).toBe('failed');
    expect(world.sagemaker.calls.create).toBe(1);
    expect(world.published.join()).toContain('docs/runbooks.md#access');
  });

  test('a notice is published once, also when somebody writes the run meanwhile', async () => {
    world.sagemaker.failCreate({
      error: serviceError('AccessDeniedException', 'not authorized to perform: iam:PassRole', 400),
    });
    const save = world.store.save.bind(world.store);
    let isNoted = false;
    world.store.save = async (...given) => {
      if (world.published.length > 0 && !isNoted) {
        isNoted = true;
        await world.ask({ action: 'note', runId: 'pretrain-261121120000', text: 'read' });
      }
      return save(...given);
    };
    await world.launch();
    await world.tick();
    expect(isNoted).toBe(true);
    expect(world.published.filter((text) => text.includes('docs/runbooks.md#access'))).toHaveLength(1);
  });

  test('fails: a job of somebody else under the name is left alone', async () => {
    world.sagemaker.jobs.set(nameOf('pretrain-261121120000'), {
      request: { TrainingJobName: 'x' } as never,
      status: 'InProgress',
      secondaryStatus: 'Training',
      createdAt: world.now(),
    });
    const runId = await world.launch();
    expect(await stateOf(runId)).toBe('failed');
    expect(world.sagemaker.calls.stop).toBe(0);
  });
});

describe('a run that breaks', () => {
  test('comes back as the next attempt from the newest whole checkpoint', async () => {
    const runId = await world.launch();
    world.train(nameOf(runId));
    world.commit(runId, 10);
    world.commit(runId, 20);
    world.commit(runId, 30, { bytes: 999 });
    await world.tick();
    expect(await world.store.find(runId)).toMatchObject({ state: 'running', committed: { step: 20 } });
    world.end(nameOf(runId), 'Failed', 'InternalServerError: We encountered an internal error');
    await world.tick();
    expect(world.jobFile(runId, 2).checkpoints.resumeFrom).toBe(`s3://checkpoint-bucket/runs/nlp/${runId}/step-20`);
    expect(world.sagemaker.live()).toBe(1);
    expect((await world.store.attempts(runId)).map((a) => a.failureClass)).toEqual(['platform', undefined]);
  });

  test('fails: user code that made no progress ends the run and tells somebody', async () => {
    const runId = await world.launch();
    world.train(nameOf(runId));
    world.end(nameOf(runId), 'Failed', 'AlgorithmError: ValueError, exit code: 1');
    await world.tick();
    expect(await stateOf(runId)).toBe('failed');
    expect(world.published.join()).toContain('docs/runbooks.md#user-code');
    expect((await world.store.active()).length).toBe(0);
  });

  test('a hang is stopped after a second observation, and resumed', async () => {
    const runId = await world.launch();
    const name = nameOf(runId);
    world.train(name);
    world.commit(runId, 10);
    world.s3.put(
      `checkpoint-bucket/runs/nlp/${runId}/heartbeat.json`,
      JSON.stringify({ attempt: 1, step: 12, phase: 'train' }),
    );
    for (let i = 0; i < 5; i++) await world.tick();
    expect(world.sagemaker.calls.stop).toBe(0);
    await world.tick();
    expect(world.sagemaker.job(name).status).toBe('Stopping');
    world.end(name, 'Stopped');
    await world.tick();
    expect((await world.store.attempts(runId))[0]).toMatchObject({ failureClass: 'hang' });
    expect(world.sagemaker.jobs.has(nameOf(runId, 2))).toBe(true);
  });

  test('a run that completes is over, published and off the list of active runs', async () => {
    const runId = await world.launch();
    world.train(nameOf(runId));
    world.end(nameOf(runId), 'Completed');
    await world.tick();
    expect(await stateOf(runId)).toBe('completed');
    expect(world.published).toHaveLength(1);
    expect(await world.store.active()).toEqual([]);
    const before = world.table.writes();
    await world.tick();
    expect(world.table.writes()).toBe(before);
  });
});

describe('services that fail', () => {
  test('while Describe fails nothing is concluded', async () => {
    const runId = await world.launch();
    world.sagemaker.mock.on(DescribeTrainingJobCommand).rejects(serviceError('ServiceUnavailable', 'try later', 503));
    const before = await world.store.find(runId);
    await world.tick();
    const after = await world.store.find(runId);
    const { undescribedSince, ...attempt } = after?.attempt ?? {};
    expect({ ...after, attempt, version: before?.version }).toEqual(before);
    expect(undescribedSince).toBe(world.now());
  });

  test('while S3 cannot be listed no attempt is launched from the beginning', async () => {
    const runId = await world.launch();
    world.train(nameOf(runId));
    world.commit(runId, 10);
    await world.tick();
    world.end(nameOf(runId), 'Failed', 'InternalServerError');
    world.s3.mock.on(ListObjectsV2Command).rejects(serviceError('SlowDown', 'reduce your request rate', 503));
    await world.tick();
    expect(world.sagemaker.jobs.size).toBe(1);
    expect(world.published.join()).toContain('docs/runbooks.md#checkpoint');
  });

  test('a notice that SNS refused is published later, and the run stays listed until then', async () => {
    const runId = await world.launch();
    world.sns.on(PublishCommand).rejects(serviceError('InternalError', 'no', 500));
    world.end(nameOf(runId), 'Completed');
    await world.tick();
    expect(world.published).toEqual([]);
    expect(await world.store.active()).toHaveLength(1);
    world.sns.on(PublishCommand).resolves({});
    await world.tick();
    expect((await world.store.find(runId))?.outbox).toEqual([]);
    expect(await world.store.active()).toHaveLength(0);
  });

  test('a stop that raced with the end of the job is no error', async () => {
    const runId = await world.launch();
    world.train(nameOf(runId));
    await world.tick();
    await world.ask({ action: 'stop', runId });
    world.sagemaker.mock
      .on(StopTrainingJobCommand)
      .rejects(serviceError('ValidationException', 'not in progress', 400));
    await world.settle();
    world.end(nameOf(runId), 'Completed');
    await world.tick();
    expect(await stateOf(runId)).toBe('completed');
  });

  test('a stop that is refused because the job is stopping does not show that it is over', async () => {
    const runId = await world.launch();
    const name = nameOf(runId);
    world.train(name);
    await world.tick();
    await world.ask({ action: 'stop', runId });
    await world.settle();
    expect(world.sagemaker.job(name).status).toBe('Stopping');
    world.sagemaker.mock.on(DescribeTrainingJobCommand).rejects(serviceError('AccessDeniedException', 'denied', 400));
    await world.tick();
    await world.tick();
    expect(world.sagemaker.calls.stop).toBeGreaterThan(1);
    const stopOf = async () => (await world.store.find(runId))?.attempt?.stop;
    expect((await stopOf())?.isTooLate).toBeUndefined();
    world.end(name, 'Stopped');
    await world.tick();
    expect((await stopOf())?.isTooLate).toBe(true);
  });

  test('one bad run delays no other: its message alone comes again', async () => {
    const bad = await world.launch();
    world.pass(MINUTE);
    const good = await world.launch();
    world.train(nameOf(good));
    const body = (runId: string) => JSON.stringify({ kind: 'run', runId });
    const real = world.store.find.bind(world.store);
    world.store.find = async (id) => {
      if (id === bad) throw new Error('table on fire');
      return real(id);
    };
    const answer = await onEvent(world.reconcile, {
      Records: [
        { messageId: '1', body: body(bad), receiptHandle: 'handle-1', eventSource: 'aws:sqs' },
        { messageId: '2', body: body(good), eventSource: 'aws:sqs' },
      ],
    });
    expect(answer).toEqual({ batchItemFailures: [{ itemIdentifier: '1' }] });
    expect((await real(good))?.state).toBe('running');
    expect(world.sqs.commandCalls(ChangeMessageVisibilityCommand).map((c) => c.args[0].input)).toEqual([
      { QueueUrl: 'https://queue', ReceiptHandle: 'handle-1', VisibilityTimeout: 20 },
    ]);
  });
});

describe('a run that is over', () => {
  const tags = () =>
    [...world.s3.objects].flatMap(([name, { tag }]) => (tag ? [[name.split('/').slice(-2).join('/'), tag]] : []));

  test('leaves uncommitted objects behind with the tag that lets them expire, and nothing else', async () => {
    const runId = await world.launch();
    world.commit(runId, 10);
    world.s3.put(`checkpoint-bucket/runs/nlp/${runId}/step-20/shard-0`, 'half');
    world.s3.put(`checkpoint-bucket/runs/nlp/${runId}/heartbeat.json`, '{}');
    await world.tick();
    expect(tags()).toEqual([]);
    world.end(nameOf(runId), 'Completed');
    await world.tick();
    expect(tags()).toEqual([['step-20/shard-0', 'slipway=leftover']]);
  });

  test('tags no folder that the marker of its script cannot match', async () => {
    for (const [marker, tagged] of [
      ["'*.done'", []],
      ["'ckpt-*/done'", []],
      ["'*/done'", [['step-20/shard-0', 'slipway=leftover']]],
    ] as const) {
      world = fakeWorld();
      const runId = await world.launch(`name: own
code: { source: image, containerEntrypoint: [python, train.py] }
compute: { instanceType: ml.m5.xlarge, instanceCount: 2 }
checkpoints: { mode: direct, committedMarker: ${marker} }
`);
      const folder = `checkpoint-bucket/runs/nlp/${runId}/`;
      for (const name of ['step-10/shard-0', 'step-10/done', 'step-20/shard-0', '20.done'])
        world.s3.put(`${folder}${name}`, 'x');
      world.end(nameOf(runId), 'Completed');
      await world.tick();
      expect(tags()).toEqual(tagged);
    }
  });

  test('lists only the objects of folders without a marker, several at a time', async () => {
    const runId = await world.launch();
    for (let step = 1; step <= 100; step++) world.commit(runId, step);
    for (const step of [1000, 2000]) world.s3.put(`checkpoint-bucket/runs/nlp/${runId}/step-${step}/shard-0`, 'half');
    await world.tick();
    world.end(nameOf(runId), 'Completed');
    const before = world.s3.mock.commandCalls(ListObjectsV2Command).length;
    await world.tick();
    const lists = world.s3.mock.commandCalls(ListObjectsV2Command).slice(before);
    const deep = lists.filter(({ args: [{ input }] }) => !input.Delimiter).map(({ args: [{ input }] }) => input.Prefix);
    expect(tags().map(([name]) => name)).toEqual(['step-1000/shard-0', 'step-2000/shard-0']);
    // The end of an attempt lists the newest folders, and then each of the two once more.
    expect(deep).toHaveLength(2 + 3 + 2);
  });

  test('ends although there is no time to look for them', async () => {
    const runId = await world.launch();
    world.s3.put(`checkpoint-bucket/runs/nlp/${runId}/step-20/shard-0`, 'half');
    world.end(nameOf(runId), 'Completed');
    world.reconcile.remainingMs = () => 50_000;
    await world.tick();
    expect(await stateOf(runId)).toBe('completed');
    expect(tags()).toEqual([]);
    expect(world.logged).toContain('warn: uncommitted checkpoints were not tagged');
  });

  test('ends although they cannot be tagged', async () => {
    const runId = await world.launch();
    world.s3.put(`checkpoint-bucket/runs/nlp/${runId}/step-20/shard-0`, 'half');
    world.s3.mock.on(PutObjectTaggingCommand).rejects(serviceError('AccessDenied', 'no', 403));
    world.end(nameOf(runId), 'Completed');
    await world.tick();
    expect(await stateOf(runId)).toBe('completed');
    expect(world.logged).toContain('warn: uncommitted checkpoints were not tagged');
  });
});

test('status has the loss of the newest heartbeat, also after the end', async () => {
  const runId = await world.launch();
  world.train(nameOf(runId));
  const heartbeat = (step: number, loss: unknown) =>
    world.s3.put(
      `checkpoint-bucket/runs/nlp/${runId}/heartbeat.json`,
      JSON.stringify({ at: 1, attempt: 1, step, phase: 'train', hosts: 2, loss }),
    );
  const lossNow = async () => {
    const answer = await world.ask({ action: 'status', runId });
    return 'loss' in answer ? answer.loss : undefined;
  };
  heartbeat(10, 3.25);
  await world.tick();
  expect(await lossNow()).toBe(3.25);
  heartbeat(99, 2.5);
  world.end(nameOf(runId), 'Completed');
  await world.tick();
  expect(await lossNow()).toBe(2.5);
});

test('status has the GPU hours of each attempt, and how busy the GPUs were where the driver tells it', async () => {
  world.limits.set('ml.g5.2xlarge for training job usage', { value: 4 });
  const runId = await world.launch(RUN_FILE.replace('ml.m5.xlarge', 'ml.g5.2xlarge'));
  world.train(nameOf(runId));
  await world.tick();
  const heartbeat = (more: object) =>
    world.s3.put(
      `checkpoint-bucket/runs/nlp/${runId}/heartbeat.json`,
      JSON.stringify({ at: 1, attempt: 1, step: 10, phase: 'train', hosts: 2, ...more }),
    );
  const gpus = async () => {
    const answer = await world.ask({ action: 'status', runId });
    const { gpuHours, gpuUtilizationPercent } = ('attempts' in answer && answer.attempts[0]) || {};
    return [gpuHours, gpuUtilizationPercent];
  };
  heartbeat({ gpuUtilizationPercent: 'high' });
  const [before = 0, unknown] = await gpus();
  expect(unknown).toBeUndefined();
  heartbeat({ step: 11, gpuUtilizationPercent: 62.5 });
  await world.tick(30);
  expect(await gpus()).toEqual([before + 1, 62.5]);
});

describe('spare hosts', () => {
  const FILE = RUN_FILE.replace('instanceCount: 2', 'instanceCount: 2, spareInstances: 1');
  const sparesNow = async (runId: string) => {
    const answer = await world.ask({ action: 'status', runId });
    return 'spareInstances' in answer ? answer.spareInstances : undefined;
  };
  const heartbeat = (runId: string, more: object) =>
    world.s3.put(
      `checkpoint-bucket/runs/nlp/${runId}/heartbeat.json`,
      JSON.stringify({ at: 1, attempt: 1, step: 10, phase: 'train', hosts: 2, ...more }),
    );

  test('are asked for, and status says how many are left', async () => {
    const runId = await world.launch(FILE);
    expect(world.sagemaker.job(nameOf(runId)).request.ResourceConfig?.InstanceCount).toBe(3);
    expect(world.jobFile(runId, 1)).toMatchObject({ spareInstances: 1 });
    world.train(nameOf(runId));
    expect(await sparesNow(runId)).toEqual({ left: null, of: 1 });
    heartbeat(runId, { setAside: [], sparesLeft: 1 });
    await world.tick();
    expect(await sparesNow(runId)).toEqual({ left: 1, of: 1 });
    heartbeat(runId, { setAside: [{ host: 'algo-2', reason: 'GPU 0 is gone' }], sparesLeft: 0 });
    await world.tick();
    await world.tick();
    expect(await sparesNow(runId)).toEqual({ left: 0, of: 1 });
    const said = world.published.filter((text) => text.includes('algo-2 was set aside (GPU 0 is gone)'));
    expect(said).toEqual([expect.stringContaining('docs/runbooks.md#spare-hosts')]);
  });

  test('of which a garbled or older heartbeat says nothing', async () => {
    const runId = await world.launch(FILE);
    world.train(nameOf(runId));
    for (const more of [{}, { setAside: 'algo-2', sparesLeft: 'one', loss: 3 }, { setAside: [{ host: 7 }] }]) {
      heartbeat(runId, more);
      await world.tick();
      expect(await sparesNow(runId)).toEqual({ left: null, of: 1 });
    }
    expect(world.published).toEqual([]);
  });

  test('that a run does not have are not in its status', async () => {
    const runId = await world.launch();
    world.train(nameOf(runId));
    heartbeat(runId, { setAside: [], sparesLeft: 0 });
    await world.tick();
    expect(await sparesNow(runId)).toBeUndefined();
  });
});

describe('events', () => {
  test('the same message twice makes no second write and no second call', async () => {
    const runId = await world.launch();
    const before = world.table.writes();
    const record = { messageId: '1', body: JSON.stringify({ kind: 'run', runId }), eventSource: 'aws:sqs' };
    await onEvent(world.reconcile, { Records: [record, record] });
    expect(world.table.writes()).toBe(before);
    expect(world.sagemaker.calls.create).toBe(1);
  });

  test('a job state change wakes its run and no other', async () => {
    const detail = { TrainingJobName: 'research-pretrain-261121120000-a003', TrainingJobStatus: 'Failed' };
    await onEvent(world.reconcile, {
      source: 'aws.sagemaker',
      'detail-type': 'SageMaker Training Job State Change',
      detail,
    });
    expect(world.messages.map((m) => JSON.parse(m.body))).toEqual([{ kind: 'run', runId: 'pretrain-261121120000' }]);
  });

  test.each([
    ['research-pretrain-261121120000-a001', 'pretrain-261121120000'],
    ['research-a-b-a1000', 'a-b'],
    ['other-pretrain-261121120000-a001', undefined],
    ['research-something', undefined],
  ])('job %s belongs to run %s', (job, runId) => {
    expect(runIdOf('research', job)).toBe(runId);
  });

  test('a message that nobody can read is dropped, not repeated', async () => {
    const answer = await onEvent(world.reconcile, {
      Records: [{ messageId: '1', body: 'no json', eventSource: 'aws:sqs' }],
    });
    expect(answer).toEqual({ batchItemFailures: [] });
    expect(world.logged).toContain('error: a message that cannot be read was dropped');
  });

  test('fails: an event that is none of the three kinds', async () => {
    await expect(onEvent(world.reconcile, { hello: 1 })).rejects.toThrow('the event must be the tick');
  });

  test('fails: a missing environment variable is named', () => {
    expect(() => reconcileDeps({ AWS_REGION: 'us-west-2' })).toThrow(
      'environment variable SLIPWAY_ENVIRONMENT is not set',
    );
  });
});

describe('admission', () => {
  const pool = 'ml.m5.xlarge for training job usage';
  /** Two runs of which there is capacity for the first. */
  async function twoForOne(): Promise<[first: string, second: string]> {
    world.limits.set(pool, { value: 2 });
    const first = await world.launch();
    world.pass(2000);
    return [first, await world.launch()];
  }

  test('a run that cannot be read delays no other', async () => {
    world.limits.set(pool, { value: 2 });
    const first = await world.launch();
    world.pass(2000);
    const broken = await world.launch();
    world.pass(2000);
    const third = await world.launch();
    world.table.leaveOut(broken, 3);
    world.end(nameOf(first), 'Completed');
    await world.tick();
    expect(world.sagemaker.jobs.has(nameOf(third))).toBe(true);
    expect(world.sagemaker.jobs.has(nameOf(broken))).toBe(false);
    expect(world.logged).toContain('error: runs were passed over by the queue');
  });

  test('a run that a read leaves out is asked for again at once', async () => {
    const [first, second] = await twoForOne();
    world.table.leaveOut(second, 2);
    world.end(nameOf(first), 'Completed');
    await world.tick();
    expect(world.sagemaker.jobs.has(nameOf(second))).toBe(true);
  });

  test('while waiting runs cannot be read none of them starts', async () => {
    const [first, second] = await twoForOne();
    world.table.leaveOut(second, 'error');
    world.end(nameOf(first), 'Completed');
    await world.tick();
    expect(world.sagemaker.jobs.has(nameOf(second))).toBe(false);
    world.table.leaveOut(second, 0);
    await world.tick();
    expect(world.sagemaker.jobs.has(nameOf(second))).toBe(true);
  });

  test('a run above what is free waits with its reason, and starts when the other is over', async () => {
    world.limits.set(pool, { value: 3 });
    const first = await world.launch();
    world.pass(2000);
    const second = await world.launch();
    expect(await world.store.find(second)).toMatchObject({
      state: 'queued',
      reason: `${pool}: needs 2, 1 of 3 are free`,
    });
    world.end(nameOf(first), 'Completed');
    await world.tick();
    expect(world.sagemaker.jobs.has(nameOf(second))).toBe(true);
  });

  test('guardrails.maxConcurrentInstances holds over all runs', async () => {
    world.describe({ guardrails: { maxConcurrentInstances: 3 } });
    await world.launch();
    world.pass(2000);
    const second = await world.launch();
    expect((await world.store.find(second))?.reason).toBe(
      'guardrails.maxConcurrentInstances: needs 2, 1 of 3 are free',
    );
  });

  test('after: the second starts when the first is completed', async () => {
    const first = await world.launch();
    world.pass(2000);
    const second = await world.launch(`${RUN_FILE}after: [${first}]\n`);
    expect((await world.store.find(second))?.reason).toBe(`waits for ${first}`);
    world.end(nameOf(first), 'Completed');
    await world.tick();
    expect(world.sagemaker.jobs.has(nameOf(second))).toBe(true);
  });
});
