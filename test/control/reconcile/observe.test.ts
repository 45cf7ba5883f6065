// What one observation asks of the services, and what it makes of answers that fail.
import { beforeEach, describe, expect, test } from 'vitest';
import { type EffectResults, observe } from '../../../lib/control/reconcile/observe/observe';
import type { WholeRun } from '../../../lib/control/reconcile/observe/subject';
import { reconcileRun } from '../../../lib/control/reconcile/reconcile-run';
import { readDescriptor } from '../../../lib/control/shared/descriptors';
import { ON_DEMAND } from '../../../lib/core/lifecycle/capacity-options';
import { NOTHING_OBSERVED } from '../../../lib/core/lifecycle/observed';
import type { RunRecord } from '../../../lib/core/lifecycle/record';
import { attempt } from '../../core/lifecycle/support/records';
import { type FakeWorld, fakeWorld, MINUTE, RUN_FILE } from '../support/fake-world';

let world: FakeWorld;
beforeEach(() => {
  world = fakeWorld();
});
const NEWS: EffectResults = { published: [] };

async function subjectOf(runId: string, change: Partial<RunRecord> = {}): Promise<WholeRun> {
  const [record, intent] = await Promise.all([world.store.find(runId), world.store.findIntent(runId)]);
  if (!record || !intent) throw new Error(`no run ${runId}`);
  return { record: { ...record, ...change }, intent, descriptor: await readDescriptor(world.reconcile, 'nlp') };
}

/** The same run with another kind of capacity to choose. */
function withChoice({ record, ...rest }: WholeRun): WholeRun {
  const [option] = record.policy.capacityOptions;
  if (!option) throw new Error('no capacity option');
  return {
    ...rest,
    record: { ...record, policy: { ...record.policy, capacityOptions: [option, { ...option, id: ON_DEMAND }] } },
  };
}

/** Names of the calls of SageMaker and S3, each once. */
async function asked(subject: WholeRun, news = NEWS) {
  world.sagemaker.mock.resetHistory();
  world.s3.mock.resetHistory();
  const observed = await observe(world.reconcile, { record: subject.record, whole: async () => subject }, news);
  if (!observed) throw new Error('nothing was observed');
  const calls = [...world.sagemaker.mock.calls(), ...world.s3.mock.calls()];
  return { observed, calls: [...new Set(calls.map(({ args }) => args[0].constructor.name))].sort() };
}

const DESCRIBE = 'DescribeTrainingJobCommand';
const LIST = 'ListObjectsV2Command';
const READ = 'GetObjectCommand';

describe('an observation asks', () => {
  let runId: string;
  beforeEach(async () => {
    runId = await world.launch();
    world.train(`research-${runId}-a001`);
    await world.tick();
  });

  test('nothing of a run that is over, and keeps the news', async () => {
    const subject = await subjectOf(runId, { state: 'completed', endedAt: 1 });
    const { observed, calls } = await asked(subject, { published: ['a'] });
    expect(calls).toEqual([]);
    expect(observed).toEqual({ ...NOTHING_OBSERVED, published: ['a'] });
  });

  test('of a job that trains for it, its heartbeat and its checkpoints', async () => {
    const { observed, calls } = await asked(await subjectOf(runId));
    expect(calls).toEqual([DESCRIBE, READ, LIST].sort());
    expect(observed.job).toMatchObject({ kind: 'present', status: 'InProgress' });
    expect(observed).not.toHaveProperty('optionsAboveQuota', expect.anything());
  });

  test('not for the job whose create was just accepted: its answer is newer than a Describe', async () => {
    const { calls } = await asked(await subjectOf(runId), { ...NEWS, create: { kind: 'accepted', arn: 'arn' } });
    expect(calls).not.toContain(DESCRIBE);
    const refused = await asked(await subjectOf(runId), { ...NEWS, create: { kind: 'doubtful', error: 'x' } });
    expect(refused.calls).toContain(DESCRIBE);
  });

  test('for the checkpoints of a job that trains as it should once an hour, and when it is over', async () => {
    const began = world.now() / 1000;
    const writesHeartbeats = () => {
      const at = world.now() / 1000;
      const starts = [{ number: 0, firstStep: 1, firstStepAt: began, step: at - began, stepAt: at, endedAt: null }];
      const heartbeat = { schema: 1, at, attempt: 1, step: at - began, starts };
      world.s3.put(`checkpoint-bucket/runs/nlp/${runId}/heartbeat.json`, JSON.stringify(heartbeat));
    };
    world.pass(MINUTE);
    writesHeartbeats();
    await reconcileRun(world.reconcile, runId);
    const subject = await subjectOf(runId);
    let listings = 0;
    for (let tick = 0; tick < 12; tick++) {
      writesHeartbeats();
      const { calls } = await asked(subject);
      expect(calls).toEqual(expect.arrayContaining([DESCRIBE, READ]));
      if (calls.includes(LIST)) listings += 1;
      world.pass(5 * MINUTE);
    }
    expect(listings).toBe(1);
    world.end(`research-${runId}-a001`, 'Failed', 'InternalServerError: x');
    const ended = await asked(subject);
    expect(ended.calls).toContain(LIST);
    expect(ended.observed.optionsAboveQuota).toBeUndefined();
    expect((await asked(withChoice(subject))).observed).toMatchObject({
      optionsAboveQuota: [],
      optionsThatDoNotFit: [],
    });
  });

  test('for nothing in S3 of a run that waits in the queue', async () => {
    const waiting = await subjectOf(runId, { attempt: undefined, admitted: false, state: 'queued' });
    const { observed, calls } = await asked(waiting);
    expect(calls).toEqual([]);
    expect(observed).toEqual(NOTHING_OBSERVED);
    const choosing = await asked(withChoice(waiting));
    expect(choosing.calls).toEqual([]);
    expect(choosing.observed).toMatchObject({ checkpoints: NOTHING_OBSERVED.checkpoints, optionsAboveQuota: [] });
  });

  test('for the checkpoints of a run that may launch, and also for the heartbeat of one whose job is not there', async () => {
    const before = await asked(await subjectOf(runId, { attempt: undefined, admitted: true, state: 'submitting' }));
    expect(before.calls).toEqual([LIST]);
    const stopped = { attempt: undefined, admitted: true, desired: 'stop' as const };
    expect((await asked(await subjectOf(runId, stopped))).calls).toEqual([]);
    const lost = attempt({ phase: 'intent', jobName: 'research-gone-a001' });
    const absent = await asked(await subjectOf(runId, { attempt: lost }));
    expect(absent.observed.job).toMatchObject({ kind: 'absent' });
    expect(absent.calls).toEqual([DESCRIBE, READ, LIST].sort());
    expect((await asked(withChoice(await subjectOf(runId, { attempt: lost })))).observed.optionsAboveQuota).toEqual([]);
  });
});

describe('a job is looked for where its attempt says', () => {
  const files = { heartbeat: 's3://old-artifacts/beat.json', checkpoints: { prefix: 's3://old-checkpoints/r/' } };
  const on = async (ends: boolean) => {
    const runId = await world.launch();
    const { attempt } = (await subjectOf(runId)).record;
    if (!attempt) throw new Error('no attempt');
    const subject = await subjectOf(runId, { attempt: { ...attempt, files } });
    if (ends) world.end(attempt.jobName, 'Failed', 'InternalServerError: x');
    const { observed } = await asked(subject);
    const places = world.s3.mock.calls().map(({ args }) => (args[0].input as { Bucket?: string }).Bucket);
    return { observed, places: [...new Set(places)].sort() };
  };

  test('and not in the buckets that the descriptor of the day names', async () => {
    expect(await on(false)).toMatchObject({ places: ['old-artifacts', 'old-checkpoints'] });
    expect(await on(true)).toMatchObject({ places: ['old-artifacts', 'old-checkpoints'] });
  });

  test('which is written down at the first observation, and kept by records that have it', async () => {
    const runId = await world.launch();
    const name = `research-${runId}-a001`;
    world.train(name);
    await world.tick();
    const item = world.table.items.get(`${runId}|RUN`);
    const record = await world.store.find(runId);
    const prefix = `s3://checkpoint-bucket/runs/nlp/${runId}/`;
    const own = { heartbeat: `${prefix}heartbeat.json`, checkpoints: { prefix } };
    expect(record?.attempt?.files).toEqual(own);
    // As before its first observation.
    const { files: _, ...old } = record?.attempt ?? attempt();
    if (item) item.document = { S: JSON.stringify({ ...record, attempt: old }) };
    await world.tick();
    expect((await world.store.find(runId))?.attempt?.files).toEqual(own);
  });
});

describe('without a descriptor', () => {
  test('the heartbeat and the checkpoints are unread, and say why', async () => {
    const runId = await world.launch();
    const { files: _, ...unseen } = (await subjectOf(runId)).record.attempt ?? attempt();
    const { descriptor: __, ...subject } = await subjectOf(runId, { attempt: unseen });
    const unread = { ...subject, descriptorError: 'ParameterNotFound' };
    expect((await asked(unread)).observed).toMatchObject({
      heartbeatError: 'the descriptor: ParameterNotFound',
      checkpoints: { kind: 'unreadable', error: 'the descriptor: ParameterNotFound' },
    });
    const before = { ...unread.record, attempt: undefined, state: 'submitting' as const };
    expect((await asked({ ...unread, record: before })).observed.startFrom).toBeUndefined();
  });
});

describe('a listing that fails', () => {
  const listed = async (change: Partial<RunRecord>, runFile = RUN_FILE) => {
    const runId = await world.launch(runFile);
    world.s3.failList(new Error('SlowDown'), new Error('SlowDown'), new Error('SlowDown'));
    const subject = await subjectOf(runId, { state: 'submitting', admitted: true, ...change });
    const { observed } = await asked(subject);
    world.s3.failList();
    return observed.checkpoints.kind;
  };

  test('is no matter before the first attempt: nobody has written to the own prefix yet', async () => {
    expect(await listed({ attempt: undefined, committed: null })).toBe('listed');
  });

  test.each<[string, Partial<RunRecord>, string?]>([
    ['after an attempt', {}],
    [
      'of a run that has committed',
      { attempt: undefined, committed: { step: 5, uri: 's3://c/step-5/', attempt: 1 } as never },
    ],
    [
      'below a prefix that runs share',
      { attempt: undefined, committed: null },
      `${RUN_FILE}checkpoints: { s3: 's3://{checkpointBucket}/runs/{team}/shared/' }\n`,
    ],
  ])('stays one %s', async (_, change, runFile) => {
    expect(await listed(change, runFile)).toBe('unreadable');
  });
});

describe('checkpoints.startFrom', () => {
  const from = async (startFrom: string) => {
    world.pass(MINUTE);
    const runId = await world.launch(
      `${RUN_FILE}checkpoints: { startFrom: '${startFrom}' }\n`.replace('pretrain', 'tune'),
    );
    const { observed } = await asked(
      await subjectOf(runId, { attempt: undefined, admitted: true, state: 'submitting' }),
    );
    return observed.startFrom;
  };
  const PREFIX = 's3://checkpoint-bucket/runs/nlp';

  test('of a run is its newest commit, with no attempt of the own run', async () => {
    const first = await world.launch();
    world.commit(first, 10);
    world.commit(first, 20);
    expect(await from(first)).toMatchObject({ uri: `${PREFIX}/${first}/step-20/`, step: 20, attempt: null });
    expect(await from(`${PREFIX}/${first}`)).toMatchObject({ step: 20 });
  });

  test('of one checkpoint is that one, and no other where it is not whole', async () => {
    const first = await world.launch();
    world.commit(first, 10);
    world.commit(first, 20, { bytes: 5 });
    world.commit(first, 30);
    expect(await from(`${PREFIX}/${first}/step-10/`)).toMatchObject({ step: 10 });
    const torn = `${PREFIX}/${first}/step-20/`;
    expect(await from(torn)).toEqual({ missing: `${torn} has no complete checkpoint` });
  });

  test('of one checkpoint is that one, however many newer ones there are', async () => {
    const first = await world.launch();
    for (let step = 10; step <= 100; step += 10) world.commit(first, step);
    const found = await from(`${PREFIX}/${first}/step-20/`);
    expect(found).toMatchObject({ uri: `${PREFIX}/${first}/step-20/`, step: 20, attempt: null });
  });

  test('fails: of one that leaves the built-in trainer no step is missing', async () => {
    const first = await world.launch();
    world.commit(first, 99);
    expect(await from(first)).toMatchObject({ step: 99 });
    world.commit(first, 100);
    const missing =
      'must be a checkpoint before step 100, the last one of this run, got step 100; raise training.steps, which counts the steps of both runs';
    expect(await from(first)).toEqual({ missing });
  });

  test('fails: of a prefix with none is missing', async () => {
    expect(await from(`${PREFIX}/nobody/`)).toEqual({ missing: `${PREFIX}/nobody/ has no complete checkpoint` });
  });
});
