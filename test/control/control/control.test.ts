import { TransactionCanceledException, TransactWriteItemsCommand } from '@aws-sdk/client-dynamodb';
import { GetParameterCommand } from '@aws-sdk/client-ssm';
import { beforeEach, describe, expect, test } from 'vitest';
import { controlDeps } from '../../../lib/control/control';
import { onRequest } from '../../../lib/control/control/control';
import type { ControlPayload } from '../../../lib/core/contracts/control';
import { serviceError } from '../support/fake-sagemaker';
import { ALIAS, type FakeWorld, fakeWorld, MINUTE, RUN_FILE } from '../support/fake-world';

let world: FakeWorld;
beforeEach(() => {
  world = fakeWorld();
});

const start = (changes: object = {}): ControlPayload => ({
  action: 'start',
  runFile: RUN_FILE,
  clientRequestId: 'r1',
  ...changes,
});
const OWN_CODE = `name: own
code: { source: ./src }
image: { kind: uri, uri: "111122223333.dkr.ecr.us-west-2.amazonaws.com/mine@sha256:0000000000000000000000000000000000000000000000000000000000000000" }
compute: { instanceType: ml.m5.xlarge }
`;
const SHA = 'ab'.repeat(32);
const messagesOf = async (payload: ControlPayload) => {
  const answer = await world.ask(payload);
  return 'issues' in answer ? answer.issues.filter((i) => i.level === 'error').map((i) => i.message) : [];
};

describe('start', () => {
  test('writes the intent and answers the run id; nothing runs before it is confirmed', async () => {
    const answer = await world.ask(start());
    expect(answer).toMatchObject({ ok: true, runId: 'pretrain-261121120000', uploads: [] });
    expect(await world.store.find('pretrain-261121120000')).toMatchObject({
      team: 'nlp',
      confirmed: false,
      state: 'submitting',
    });
    expect(world.messages).toEqual([]);
    expect(world.s3.objects.get('artifact-bucket/runs/nlp/pretrain-261121120000/run.yaml')?.body).toBe(RUN_FILE);
  });

  test('confirm puts the run into the queue and sends one message', async () => {
    await world.ask(start());
    const answer = await world.ask({ action: 'start', runId: 'pretrain-261121120000', confirm: true });
    expect(answer).toMatchObject({ ok: true, state: 'queued' });
    expect(world.messages.map((m) => JSON.parse(m.body))).toEqual([{ kind: 'admit', runId: 'pretrain-261121120000' }]);
  });

  test('signs an upload for the exact digest, and confirms only when it is there whole', async () => {
    const answer = await world.ask(start({ runFile: OWN_CODE, code: { sha256: SHA, bytes: 5 } }));
    const key = `runs/nlp/own-261121120000/code/${SHA}.tar.gz`;
    expect(answer).toMatchObject({ uploads: [{ key, sha256: SHA, url: `https://signed/${key}` }] });
    const confirm: ControlPayload = { action: 'start', runId: 'own-261121120000', confirm: true };
    expect(await messagesOf(confirm)).toEqual([
      'file: must be uploaded whole (5 bytes) before the start is confirmed, got nothing; launch again'.replace(
        'file',
        'code.source',
      ),
    ]);
    world.s3.put(`artifact-bucket/${key}`, 'four');
    expect(await messagesOf(confirm)).toHaveLength(1);
    world.s3.put(`artifact-bucket/${key}`, 'whole');
    expect(await world.ask(confirm)).toMatchObject({ ok: true, state: 'queued' });
  });

  test('repeated with the same request id finds the run of the first', async () => {
    const first = await world.ask(start());
    world.pass(MINUTE);
    expect(await world.ask(start())).toMatchObject({ ok: true, runId: 'runId' in first ? first.runId : '' });
  });

  test('whose write took effect without an answer is not taken for somebody else', async () => {
    const create = world.store.create.bind(world.store);
    world.store.create = async (...args) => {
      await create(...args);
      return create(...args);
    };
    expect(await world.ask(start({ runId: 'mine' }))).toMatchObject({ ok: true, runId: 'mine' });
  });

  test('of the same name in the same second takes the next free second', async () => {
    await world.ask(start());
    expect(await world.ask(start({ clientRequestId: 'r2' }))).toMatchObject({ runId: 'pretrain-261121120001' });
  });

  test('fails: a run id that was asked for and is taken', async () => {
    await world.ask(start({ runId: 'mine' }));
    expect(await messagesOf(start({ runId: 'mine', clientRequestId: 'r2' }))).toEqual([
      '--run-id: must be a run id that is free, got mine; leave --run-id out, or use another one',
    ]);
  });

  test('fails: all issues of the file at once, and nothing is written', async () => {
    const found = await messagesOf(start({ runFile: 'name: BAD\ncompute: { instanceType: ml.m5.xlarge }\n' }));
    expect(found.length).toBeGreaterThan(1);
    expect(world.table.writes()).toBe(0);
  });

  test('fails: guardrails of the environment hold, whatever the caller computed', async () => {
    world.describe({ guardrails: { maxInstancesPerRun: 1 } });
    expect(await messagesOf(start())).toEqual([
      'compute.instanceCount: must be at most 1 in environment research, got 2; ask the platform team, or launch into another environment',
    ]);
  });

  test('fails: more than the quota, with its name and code', async () => {
    world.limits.set('ml.m5.xlarge for training job usage', { value: 1 });
    expect(await messagesOf(start())).toEqual([
      'compute.instanceCount: must be at most 1 (quota ml.m5.xlarge for training job usage, L-CCE2AFA6), got 2; lower it, or request an increase with slipway quota FILE --request',
    ]);
  });

  test('fails: overrides are applied before the checks', async () => {
    expect(await messagesOf(start({ overrides: ['compute.instanceCount=0'] }))).toHaveLength(1);
  });

  test('fails: own code without the digest of its archive', async () => {
    expect((await messagesOf(start({ runFile: OWN_CODE })))[0]).toContain(
      'code.source: must come with the digest of its archive',
    );
  });

  test('code that lies in S3 stays there, held to the digest it had at the start', async () => {
    const runFile = OWN_CODE.replace('./src', 's3://data-bucket/code/train.tar.gz');
    expect((await messagesOf(start({ runFile })))[0]).toContain('must come with the digest of its archive');
    const answer = await world.ask(start({ runFile, runId: 'in-s3', code: { sha256: SHA, bytes: 5 } }));
    expect(answer).toMatchObject({ ok: true, uploads: [] });
    const kept = { uri: 's3://data-bucket/code/train.tar.gz', sha256: SHA, bytes: null };
    expect((await world.store.findIntent('in-s3'))?.code).toEqual(kept);
    expect(await world.ask({ action: 'start', runId: 'in-s3', confirm: true })).toMatchObject({ state: 'queued' });
    const stated = runFile.replace('tar.gz', `tar.gz, sha256: "${SHA}"`);
    await world.ask(start({ runFile: stated, runId: 'stated', clientRequestId: 'r3' }));
    expect((await world.store.findIntent('stated'))?.code).toEqual(kept);
  });

  test('fails: a price that nobody knows needs a limit or an acknowledgement', async () => {
    const unknown = start({ overrides: ['compute.instanceType=ml.m6i.large'] });
    const refused = await messagesOf(unknown);
    expect(refused.join()).toContain('must have a known price');
    expect(
      await world.ask({
        ...unknown,
        overrides: ['compute.instanceType=ml.m6i.large', 'limits.maxCostUsd=5'],
      } as ControlPayload),
    ).toMatchObject({ ok: true });
  });

  test('fails: a cap below what the whole run is planned to cost', async () => {
    const on = (cap: string) =>
      messagesOf(
        start({
          overrides: [
            'compute.instanceType=ml.p5.48xlarge',
            'training.globalBatchSize=16',
            'training.steps=2000000',
            `limits.maxCostUsd=${cap}`,
          ],
        }),
      );
    expect((await on('1')).join()).toMatch(
      /limits.maxCostUsd: must be at least the \$\d+ that the whole run is planned/,
    );
    expect((await on('10000000')).join()).not.toContain('planned to cost');
  });

  test("fails: another team's run cannot be waited for or started from", async () => {
    await world.ask(start({ runId: 'theirs' }), ALIAS.replace('team-nlp', 'team-speech'));
    expect((await messagesOf(start({ runFile: `${RUN_FILE}after: [theirs]\n` })))[0]).toBe(
      'after[0]: must be a run of team nlp, got theirs; see slipway list',
    );
  });
});

describe('who calls', () => {
  test('is told by the alias alone: a team in the payload is refused', async () => {
    expect(await world.ask({ ...start(), team: 'speech' } as never)).toMatchObject({ ok: false });
  });

  test.each([
    'arn:aws:lambda:us-west-2:111122223333:function:slipway-research-control',
    'arn:aws:lambda:us-west-2:111122223333:function:slipway-research-control:$LATEST',
    'arn:aws:lambda:us-west-2:111122223333:function:slipway-research-control:team-',
  ])('fails: %s is no alias of a team', async (arn) => {
    expect(await world.ask(start(), arn)).toMatchObject({ ok: false, issues: [{ rule: 'control/alias' }] });
  });

  test("fails: another team's run does not exist for this one", async () => {
    await world.ask(start());
    const other = ALIAS.replace('team-nlp', 'team-speech');
    for (const action of ['stop', 'resume', 'status'] as const) {
      expect(await world.ask({ action, runId: 'pretrain-261121120000' }, other)).toMatchObject({
        ok: false,
        issues: [{ rule: 'run/unknown' }],
      });
    }
    expect(await world.ask({ action: 'list' }, other)).toEqual({ ok: true, runs: [] });
  });
});

describe('stop, resume, status, list', () => {
  test('stop writes the wish, and a second stop writes nothing', async () => {
    const runId = await world.launch();
    expect(await world.ask({ action: 'stop', runId, reason: 'enough' })).toEqual({
      ok: true,
      runId,
      desiredState: 'stop',
      state: 'pending',
      changed: true,
    });
    const writes = world.table.writes();
    await world.ask({ action: 'stop', runId });
    expect(world.table.writes()).toBe(writes);
    await world.settle();
    expect(world.sagemaker.calls.stop).toBe(1);
  });

  test('a wish that raced with reconcile is written on the newest version', async () => {
    const runId = await world.launch();
    const lost = new TransactionCanceledException({
      message: 'x',
      $metadata: {},
      CancellationReasons: [{ Code: 'ConditionalCheckFailed' }],
    });
    let first = true;
    const save = world.store.save.bind(world.store);
    world.store.save = async (...args) => {
      if (!first) return save(...args);
      first = false;
      return Promise.reject(lost).catch(() => false);
    };
    expect(await world.ask({ action: 'stop', runId })).toMatchObject({ desiredState: 'stop' });
    expect((await world.store.find(runId))?.desired).toBe('stop');
  });

  test('resume brings a stopped run back as its next attempt', async () => {
    const runId = await world.launch();
    world.train(`research-${runId}-a001`);
    world.commit(runId, 10);
    await world.ask({ action: 'stop', runId });
    await world.settle();
    world.end(`research-${runId}-a001`, 'Stopped');
    await world.tick();
    expect((await world.store.find(runId))?.state).toBe('stopped');
    await world.ask({ action: 'resume', runId });
    await world.settle();
    expect(world.jobFile(runId, 2).checkpoints.resumeFrom).toContain('step-10');
  });

  test('a stop of a run that has completed changes nothing and says so', async () => {
    const runId = await world.launch();
    world.end(`research-${runId}-a001`, 'Completed');
    await world.tick();
    const writes = world.table.writes();
    const said = { ok: true, runId, desiredState: 'run', state: 'completed', changed: false };
    expect(await world.ask({ action: 'stop', runId })).toEqual(said);
    expect([world.table.writes(), world.messages.length]).toEqual([writes, 0]);
  });

  test('fails: a completed run is not resumed', async () => {
    const runId = await world.launch();
    world.end(`research-${runId}-a001`, 'Completed');
    await world.tick();
    expect(await messagesOf({ action: 'resume', runId })).toHaveLength(1);
  });

  test('status tells attempts, steps, spend and, when asked, every decision with its evidence', async () => {
    const runId = await world.launch();
    world.train(`research-${runId}-a001`);
    world.commit(runId, 10);
    await world.tick(60);
    const answer = await world.ask({ action: 'status', runId, timeline: true });
    expect(answer).toMatchObject({
      ok: true,
      state: 'running',
      committedStep: 10,
      attempts: [{ trainingJobName: `research-${runId}-a001`, status: 'InProgress' }],
    });
    if (!('spendUsd' in answer) || !answer.timeline) throw new Error('no status');
    expect(answer.spendUsd).toBeGreaterThan(0);
    expect(answer.timeline.map((t) => t.what)).toEqual([
      'run-intended',
      'run-confirmed',
      'run-admitted',
      'attempt-intended',
      'job-created',
      'job-status',
      'checkpoint-committed',
      'job-status',
    ]);
  });

  test('list tells the place in the queue and why a run waits', async () => {
    world.limits.set('ml.m5.xlarge for training job usage', { value: 3 });
    await world.launch();
    world.pass(2000);
    await world.launch();
    const answer = await world.ask({ action: 'list' });
    if (!('runs' in answer)) throw new Error('no list');
    expect(answer.runs.map((r) => [r.state, r.queuePosition])).toEqual([
      ['queued', 1],
      ['pending', null],
    ]);
    expect(answer.runs[0]?.reason).toContain('needs 2, 1 of 3 are free');
  });
});

describe('what goes wrong', () => {
  test.each([null, 'start', { action: 'fly' }, { action: 'start' }, { action: 'stop', runId: '../other' }])(
    'fails: malformed payload %j is a refusal with issues',
    async (payload) => {
      const answer = await onRequest(world.control, payload, ALIAS);
      expect(answer).toMatchObject({ ok: false });
    },
  );

  test('fails: a service error is thrown, not answered', async () => {
    world.table.mock.on(TransactWriteItemsCommand).rejects(serviceError('InternalServerError', 'table', 500));
    await expect(world.ask(start())).rejects.toThrow('table');
  });

  test('fails: a descriptor that is none names its parameter', async () => {
    world.ssm.on(GetParameterCommand).resolves({ Parameter: { Value: '{}' } });
    await expect(world.ask(start())).rejects.toThrow(
      'SSM parameter /slipway/environments/research/nlp is no descriptor',
    );
  });

  test('fails: a missing environment variable is named', () => {
    expect(() => controlDeps({})).toThrow('environment variable SLIPWAY_ENVIRONMENT is not set');
  });
});

describe('a start at a time', () => {
  const ID = 'pretrain-261121120000';

  test('waits in the queue until then, as if it had joined it then', async () => {
    const startAt = new Date(world.now() + 60 * MINUTE).toISOString();
    await world.ask(start({ startAt }));
    await world.ask({ action: 'start', runId: ID, confirm: true });
    expect(await world.store.find(ID)).toMatchObject({
      state: 'queued',
      notBefore: Date.parse(startAt),
      queuedAt: Date.parse(startAt),
      reason: `waiting until ${startAt}`,
    });
  });

  test('goes on saying until when it waits, and starts then', async () => {
    const startAt = new Date(world.now() + 60 * MINUTE).toISOString();
    await world.ask(start({ startAt }));
    await world.ask({ action: 'start', runId: ID, confirm: true });
    await world.tick(5);
    expect(await world.store.find(ID)).toMatchObject({ admitted: false, reason: `waiting until ${startAt}` });
    await world.tick(60);
    expect(world.sagemaker.jobs.size).toBe(1);
  });

  test('joins the queue like any other once its time is over', async () => {
    const startAt = new Date(world.now() + MINUTE).toISOString();
    await world.ask(start({ startAt }));
    await world.tick(5);
    await world.ask({ action: 'start', runId: ID, confirm: true });
    const { queuedAt, reason } = (await world.store.find(ID)) ?? {};
    expect([queuedAt, reason]).toEqual([world.now(), 'waiting in the queue']);
  });

  test('fails: a time that is none is refused', async () => {
    expect(await messagesOf(start({ startAt: 'tomorrow' }))).toHaveLength(1);
  });
});
