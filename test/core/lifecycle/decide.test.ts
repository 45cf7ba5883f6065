import { describe, expect, test } from 'vitest';
import { holdsCapacity, isQueued } from '../../../lib/control/shared/queue-runs';
import { admitRun, askResume, askStop } from '../../../lib/core/lifecycle/intent';
import {
  admitted,
  attempt,
  checkpoint,
  failedJob,
  HOUR,
  job,
  MINUTE,
  policy,
  run,
  running,
  seeing,
  T0,
} from './support/records';

const NAME = 'research-pretrain-261121120000-a001';
const intended = (changes = {}) =>
  admitted({
    state: 'submitting',
    attempt: attempt({
      phase: 'intent',
      status: '',
      secondaryStatus: '',
      jobArn: undefined,
      jobCreatedAt: undefined,
      acceptedAt: undefined,
      ...changes,
    }),
  });

describe('launch', () => {
  test('writes the intent before it creates, with the name fixed', () => {
    const { actions } = run(admitted(), seeing());
    expect(actions.map((a) => a.do)).toEqual(['save', 'create']);
    expect(actions[1]).toMatchObject({ attempt: 1, resumeFrom: null });
    expect(actions[0]).toMatchObject({
      previousVersion: 1,
      record: { version: 2, attempt: { phase: 'intent', jobName: NAME } },
    });
  });

  test.each([
    ['not admitted', { admitted: false }],
    ['not confirmed', { confirmed: false }],
    ['told to wait', { notBefore: T0 + 2 * HOUR }],
  ])('does nothing while %s', (_, changes) => {
    expect(run(admitted(changes), seeing(), T0 + MINUTE).actions).toEqual([]);
  });

  test('fails: uploads that are never confirmed end the run after an hour', () => {
    const after = run(admitted({ confirmed: false }), seeing(), T0 + HOUR);
    expect(after.record).toMatchObject({ state: 'failed', reason: 'the uploads of this start were never confirmed' });
  });

  test('does not launch while it cannot see which checkpoints are complete', () => {
    const blind = seeing({ checkpoints: { kind: 'unreadable', error: 'AccessDenied' } });
    const after = run(admitted(), blind);
    expect(after.effects).toEqual([]);
    expect(after.notices).toEqual(['checkpoints-unreadable']);
  });

  describe('while its checkpoints cannot be read', () => {
    const blind = seeing({ checkpoints: { kind: 'unreadable', error: 'AccessDenied' } });
    const between = admitted({
      state: 'resuming',
      queuedAt: T0 - 5 * HOUR,
      attempt: attempt({ phase: 'ended', endedAt: T0 }),
    });

    test('keeps its room for an hour, and then lets others have it', () => {
      expect(run(between, blind, T0 + HOUR - 1).record.admitted).toBe(true);
      const { record, events } = run(between, blind, T0 + HOUR);
      expect(record).toMatchObject({
        state: 'queued',
        admitted: false,
        queuedAt: between.queuedAt,
        preemptedAt: T0 + HOUR,
        notBefore: T0 + 1.5 * HOUR,
      });
      expect(record.reason).toContain('AccessDenied');
      expect(events).toContain('room-returned');
    });

    test('gives the room back at once when they cannot be read at its next turn either', () => {
      const again = admitRun(run(between, blind, T0 + HOUR).record, 'admitted by the queue', T0 + 2 * HOUR).record;
      expect(run({ ...again, notBefore: undefined }, blind, T0 + 2 * HOUR).record.admitted).toBe(false);
      expect(run({ ...again, notBefore: undefined }, seeing(), T0 + 2 * HOUR).effects).toMatchObject([
        { do: 'create' },
      ]);
    });

    test('counts from the moment at which it joined the queue when it has had no attempt', () => {
      const first = admitted({ queuedAt: T0 });
      expect(run(first, blind, T0 + HOUR - 1).record.admitted).toBe(true);
      expect(run(first, blind, T0 + HOUR).record.admitted).toBe(false);
    });

    test('tells a person again each day', () => {
      const told = (at: number) => run(between, blind, at).record.alerts;
      expect(told(T0 + HOUR)).toEqual(told(T0));
      expect(told(T0 + 25 * HOUR)).not.toEqual(told(T0));
    });
  });

  test('fails: everything that was committed is gone, so it does not silently begin again', () => {
    const after = run(admitted({ committed: checkpoint(5000) }), seeing());
    expect(after.record.state).toBe('failed');
    expect(after.record.reason).toContain('step 5000 was committed');
  });

  test('begins from startFrom only when it has nothing of its own', () => {
    const other = checkpoint(900);
    expect(run(admitted(), seeing({ startFrom: other })).record.attempt?.resumeFrom).toEqual(other);
    expect(run(admitted(), seeing({ startFrom: other }, [100])).record.attempt?.resumeFrom).toEqual(checkpoint(100));
  });

  test('fails: startFrom without a complete checkpoint does not silently begin at the beginning', () => {
    const after = run(admitted(), seeing({ startFrom: { missing: 'run other has no complete checkpoint' } }));
    expect(after.record).toMatchObject({
      state: 'failed',
      reason: 'checkpoints.startFrom: run other has no complete checkpoint',
    });
  });

  test('fails: a capacity option that the memory check refuses', () => {
    expect(run(admitted(), seeing({ optionsThatDoNotFit: ['as-written'] })).record).toMatchObject({ state: 'failed' });
  });
});

describe('a create whose answer is doubtful', () => {
  const absent = seeing({ job: { kind: 'absent' } });

  test('is settled by Describe: ours is adopted', () => {
    const after = run(intended(), seeing({ job: job() }));
    expect(after.record.attempt).toMatchObject({ phase: 'created', jobArn: 'arn:job', number: 1 });
    expect(after.events).toEqual(['job-adopted']);
    expect(after.effects).toEqual([]);
  });

  test('is repeated under the same name when the job is absent after the pause', () => {
    const after = run(intended(), absent, T0 + 6000);
    expect(after.effects).toMatchObject([{ do: 'create', attempt: 1 }]);
    expect(after.record.attempt).toMatchObject({ createTries: 2, number: 1, jobName: NAME });
  });

  test('is not repeated within the consistency pause', () => {
    expect(run(intended(), absent, T0 + 3000).actions).toEqual([]);
  });

  test('waits when Describe itself fails', () => {
    const after = run(intended(), seeing({ job: { kind: 'unreadable', error: '503' } }));
    expect(after.actions.map((action) => action.do)).toEqual(['save']);
    expect(after.record).toMatchObject({ state: 'submitting', attempt: { phase: 'intent', createTries: 1 } });
  });

  test('fails: a foreign job under the name is refused and left alone', () => {
    const after = run(intended(), seeing({ job: job({ identity: 'foreign' }) }));
    expect(after.record.state).toBe('failed');
    const saved = after.actions.flatMap((action) => (action.do === 'save' ? action.events : []));
    const { arn, createdAt } = job();
    expect(saved).toContainEqual(expect.objectContaining({ evidence: { arn, createdAt } }));
    expect(after.effects).toEqual([]);
    expect(after.notices).toEqual(['run-failed']);
  });

  test('a job whose tags cannot be read is neither adopted nor refused', () => {
    const after = run(intended(), seeing({ job: job({ identity: 'unread' }) }));
    expect(after.record.attempt?.phase).toBe('intent');
    expect(after.notices).toEqual(['tags-unreadable']);
  });

  test('a refusal proves nothing while the job may exist', () => {
    const refused = { kind: 'refused', failureClass: 'access', error: 'AccessDenied' } as const;
    expect(run(intended({ createTries: 2 }), seeing({ create: refused })).actions).toEqual([]);
    expect(run(intended(), seeing({ create: refused, job: { kind: 'absent' } })).record.state).toBe('failed');
  });

  test('quota at create: back to the queue, no attempt burnt, the same name later', () => {
    const limit = { kind: 'limit', error: 'ResourceLimitExceeded' } as const;
    const waiting = run(intended(), seeing({ create: limit, job: { kind: 'absent' } }), T0 + MINUTE);
    expect(waiting.record).toMatchObject({ state: 'queued', admitted: false, budgets: { failures: 0 } });
    const later = { ...waiting.record, admitted: true };
    const again = run(later, absent, (waiting.record.notBefore ?? 0) + 1);
    expect(again.effects).toMatchObject([{ do: 'create', attempt: 1 }]);
    expect(again.record.attempt?.jobName).toBe(NAME);
  });

  test('fails: a type that the region does not offer, for which no quota helps, and no other option is left', () => {
    // aws/amazon-sagemaker-examples#1001
    const error =
      'ResourceLimitExceeded: The requested resource training-job/ml.p2.xlarge is not available in this region';
    const unoffered = seeing({ create: { kind: 'limit', error }, job: { kind: 'absent' } });
    expect(run(intended(), unoffered).record).toMatchObject({ state: 'failed', reason: error });
    const capacityOptions = policy().capacityOptions.flatMap((option) => [option, { ...option, id: 'other' }]);
    const other = run({ ...intended(), policy: policy({ capacityOptions }) }, unoffered);
    expect(other.record).toMatchObject({ state: 'queued', capacityOptionId: 'other' });
  });

  test('a create without an answer keeps its capacity option until no job of it can exist any more', () => {
    const limit = { kind: 'limit', error: 'ResourceLimitExceeded' } as const;
    const doubtful = intended({ createTries: 2, lastCreateAt: T0 });
    const refused = run(doubtful, seeing({ create: limit, job: { kind: 'absent' } }), T0);
    expect(refused.record.attempt?.unmadeTries).toBeUndefined();
    const early = run(refused.record, seeing({ job: { kind: 'absent' } }), T0 + 9 * MINUTE);
    expect(early.record.attempt?.unmadeTries).toBeUndefined();
    const unseen = run(
      refused.record,
      seeing({ job: { kind: 'unreadable', error: 'AccessDenied' } }),
      T0 + 11 * MINUTE,
    );
    expect(unseen.record.attempt?.unmadeTries).toBeUndefined();
    const sure = run(refused.record, seeing({ job: { kind: 'absent' } }), T0 + 11 * MINUTE);
    expect(sure.record.attempt?.unmadeTries).toBe(2);
    const elsewhere = admitRun(sure.record, 'admitted by the queue', T0 + 12 * MINUTE, 'as-written@2');
    expect(elsewhere?.record).toMatchObject({
      capacityOptionId: 'as-written@2',
      attempt: { capacityOptionId: 'as-written@2', number: 1 },
    });
  });

  test('fails: quota that never comes ends with the time budget of capacity', () => {
    const tired = {
      ...intended(),
      budgets: { failures: 0, stale: 0, stalePlatform: 0, byClass: {}, capacityTries: 9, capacitySince: T0 },
    };
    const limit = { kind: 'limit', error: 'ResourceLimitExceeded: 0' } as const;
    const after = run(tired, seeing({ create: limit, job: { kind: 'absent' } }), T0 + 8 * 24 * HOUR);
    expect(after.record.state).toBe('failed');
    expect(after.record.reason).toContain('waited 192 h');
  });
});

test.each(['failed', 'stopped', 'completed'] as const)('a run that is %s stays so when its job is deleted', (state) => {
  // kubeflow/trainer#3737
  const after = run({ ...running(), state }, seeing({ job: { kind: 'absent' } }), T0 + 48 * HOUR);
  expect([after.record.state, after.effects]).toEqual([state, []]);
});

describe('a name that was freed', () => {
  test('a job that vanished is a new attempt under a new name, never the same name again', () => {
    const first = run(running(), seeing({ job: { kind: 'absent' } }, [100]), T0 + HOUR - MINUTE);
    expect(first.record.attempt).toMatchObject({ phase: 'created' });
    const after = run(first.record, seeing({ job: { kind: 'absent' } }, [100]));
    expect(after.record).toMatchObject({ state: 'resuming', attempt: { phase: 'ended', failureClass: 'deleted' } });
    const next = run(after.record, seeing({}, [100]));
    expect(next.effects).toMatchObject([{ do: 'create', attempt: 2, resumeFrom: { step: 100 } }]);
  });

  test('a job that was just accepted and is not shown yet is waited for', () => {
    const fresh = running({ attempt: attempt({ status: '', acceptedAt: T0 + HOUR - 1000 }) });
    expect(run(fresh, seeing({ job: { kind: 'absent' } })).actions).toEqual([]);
  });

  test('fails: another job took the name after ours was deleted', () => {
    const after = run(running(), seeing({ job: job({ createdAt: T0 + HOUR }) }));
    expect(after.record).toMatchObject({ state: 'failed' });
    expect(after.record.reason).toContain('deleted and taken again');
  });
});

describe('resume', () => {
  test('takes the newest complete checkpoint and says which ones it passed over', () => {
    const torn = [{ uri: 's3://c/step-300/', why: 'object shard-1 is missing' }];
    const seen = seeing({
      job: failedJob('InternalServerError: x'),
      checkpoints: { kind: 'listed', committed: [checkpoint(200), checkpoint(100)], torn },
    });
    const ended = run(running(), seen);
    const next = run(ended.record, { ...seen, job: { kind: 'not-asked' } });
    expect(next.effects).toMatchObject([{ do: 'create', attempt: 2, resumeFrom: checkpoint(200) }]);
    const save = next.actions[0];
    expect(save?.do === 'save' && save.events[0]?.evidence.passedOver).toEqual([
      's3://c/step-300/ (object shard-1 is missing)',
    ]);
  });

  test('after exit code 71 before anything new takes the checkpoint before, even if the bad one is written again later', () => {
    const reason = 'AlgorithmError: {"slipway":1,"class":"checkpoint","code":71,"reason":"shard unreadable"}';
    const second = running({
      attempt: attempt({ number: 2, resumeFrom: checkpoint(200), committedAtStart: 200 }),
      committed: checkpoint(200),
    });
    const ended = run(second, seeing({ job: failedJob(reason) }, [200, 100]));
    const next = run({ ...ended.record, notBefore: undefined }, seeing({}, [200, 100]));
    expect(next.record.attempt?.resumeFrom).toEqual(checkpoint(100));
    const rewritten = seeing({
      checkpoints: { kind: 'listed', committed: [checkpoint(200, 3), checkpoint(100)], torn: [] },
    });
    expect(run({ ...ended.record, notBefore: undefined }, rewritten).record.attempt?.resumeFrom).toEqual(
      checkpoint(200, 3),
    );
  });

  test('waits to judge an ended job until its checkpoints can be read', () => {
    const blind = seeing({
      job: failedJob('AlgorithmError: exit code: 1'),
      checkpoints: { kind: 'unreadable', error: '503' },
    });
    const after = run(running(), blind);
    expect(after.record.attempt?.phase).toBe('created');
    expect(after.notices).toEqual(['checkpoints-unreadable']);
  });

  test('lets others have the room of an ended job that cannot be judged for an hour', () => {
    const ended = failedJob('InternalServerError: x', { endedAt: T0 });
    const blind = seeing({ job: ended, checkpoints: { kind: 'unreadable', error: '503' } });
    expect(run(running(), blind, T0 + HOUR - 1).record.admitted).toBe(true);
    const { record } = run(running(), blind, T0 + HOUR);
    expect([record.admitted, isQueued(record), holdsCapacity(record)]).toEqual([false, false, false]);
    const judged = run(record, seeing({ job: ended }, [100]), T0 + 2 * HOUR);
    expect(judged.record).toMatchObject({ state: 'queued', queuedAt: record.queuedAt, preemptedAt: T0 + 2 * HOUR });
    expect(isQueued(judged.record)).toBe(true);
    expect(judged.events).toContain('room-returned');
  });

  test('hand-over at the run-time limit is no failure and waits for nothing', () => {
    const seen = seeing({ job: job({ status: 'Stopped', secondaryStatus: 'MaxRuntimeExceeded' }) }, [900]);
    const after = run(running(), seen);
    expect(after.record).toMatchObject({ state: 'resuming', notBefore: undefined, budgets: { failures: 0, stale: 0 } });
  });

  test('spot interruption inside the job starts nothing', () => {
    for (const secondaryStatus of ['Interrupted', 'Restarting', 'Starting']) {
      const after = run(running(), seeing({ job: job({ secondaryStatus }) }));
      expect(after.effects).toEqual([]);
      expect(after.record.state).toBe('resuming');
    }
  });

  test('spot that found no capacity goes on-demand under the next name', () => {
    const option = policy().capacityOptions[0];
    if (!option) throw new Error('no capacity option');
    const capacityOptions = [
      { ...option, usage: 'spot' as const },
      { ...option, id: 'on-demand' },
    ];
    const seen = seeing({
      job: job({ status: 'Stopped', secondaryStatus: 'MaxWaitTimeExceeded', trainingStartedAt: undefined }),
    });
    const after = run(running({ policy: policy({ capacityOptions }) }), seen);
    expect(after.record).toMatchObject({ capacityOptionId: 'on-demand', budgets: { failures: 0 } });
    const next = run({ ...after.record, notBefore: undefined }, seeing());
    expect(next.effects).toMatchObject([{ capacityOptionId: 'on-demand', attempt: 2 }]);
  });
});

describe('crash loop', () => {
  const hang = () => failedJob('AlgorithmError: {"slipway":1,"class":"hang","code":70}');

  test('fails: two attempts in a row without a newer committed step', () => {
    const first = run(running(), seeing({ job: hang() }));
    expect(first.record.state).toBe('resuming');
    const second = { ...first.record, attempt: attempt({ number: 2 }) };
    const after = run(second, seeing({ job: hang() }));
    expect(after.record).toMatchObject({ state: 'failed', budgets: { stale: 2 } });
    expect(after.record.reason).toContain('crash loop');
  });

  test('a newer committed step starts the count again', () => {
    const first = run(running(), seeing({ job: hang() }));
    const second = run({ ...first.record, attempt: attempt({ number: 2 }) }, seeing({ job: hang() }, [100]));
    expect(second.record).toMatchObject({ state: 'resuming', budgets: { stale: 0, failures: 1 } });
  });

  test('only tells somebody where progress cannot be seen', () => {
    const blind = running({
      policy: policy({ seesCommits: false }),
      budgets: { failures: 1, stale: 1, stalePlatform: 0, byClass: {}, capacityTries: 0 },
    });
    const after = run(blind, seeing({ job: hang() }));
    expect(after.record.state).toBe('resuming');
    expect(after.notices).toEqual(['no-progress']);
  });

  test('fails: user code that committed nothing new is not tried again', () => {
    expect(
      run(running(), seeing({ job: failedJob('AlgorithmError: ExecuteUserScriptError: exit code: 1') })).record.state,
    ).toBe('failed');
  });

  test('user code that made progress since is tried again', () => {
    expect(run(running(), seeing({ job: failedJob('AlgorithmError: exit code: 1') }, [100])).record.state).toBe(
      'resuming',
    );
  });

  test('fails: limits.maxAttempts bounds the failed attempts that made no progress', () => {
    const last = running({ budgets: { failures: 19, stale: 0, stalePlatform: 0, byClass: {}, capacityTries: 0 } });
    const after = run(last, seeing({ job: failedJob('InternalServerError') }));
    expect(after.record.reason).toContain('limits.maxAttempts (20)');
  });
});

describe('a job whose heartbeats are late', () => {
  const heartbeat = { step: 10, phase: '', heartbeatAt: T0, movedAt: T0 };
  const late = running({ attempt: attempt({ progress: heartbeat }) });

  test('is written as alive once an observation, not at each round of it', () => {
    const first = run(late, seeing({ job: job() }), T0 + 10 * MINUTE);
    expect(first.record.attempt?.aliveAt).toBe(T0 + 10 * MINUTE);
    expect(run(first.record, seeing({ job: job() }), T0 + 10 * MINUTE + 500).actions).toEqual([]);
  });

  test('is written as alive again at the next tick', () => {
    const first = run(late, seeing({ job: job() }), T0 + 10 * MINUTE);
    const next = run(first.record, seeing({ job: job() }), T0 + 15 * MINUTE);
    expect(next.record.attempt?.aliveAt).toBe(T0 + 15 * MINUTE);
  });
});

describe('stop and resume', () => {
  const asked = (record = running()) => askStop(record, 'stop asked by team nlp', T0)?.record ?? record;

  test('before anything runs ends the run at once', () => {
    expect(run(asked(admitted()), seeing()).record).toMatchObject({ state: 'stopped' });
  });

  test('of a live job sends one stop, and the same observation sends no second', () => {
    const first = run(asked(), seeing({ job: job() }));
    expect(first.effects).toMatchObject([{ do: 'stop' }]);
    expect(first.record.attempt?.stop?.why).toBe('user');
    expect(run(first.record, seeing({ job: job() })).actions).toEqual([]);
  });

  test('is sent again when the job still runs minutes later', () => {
    const first = run(asked(), seeing({ job: job() }));
    expect(run(first.record, seeing({ job: job() }), T0 + HOUR + 4 * MINUTE).effects).toHaveLength(1);
  });

  test('that raced with completion is a completed run', () => {
    const after = run(asked(), seeing({ job: job({ status: 'Completed', secondaryStatus: 'Completed' }) }));
    expect(after.record.state).toBe('completed');
  });

  test('while a create is in doubt waits until the job can no longer appear', () => {
    const doubtful = asked(intended());
    expect(run(doubtful, seeing({ job: { kind: 'absent' } }), T0 + MINUTE).actions).toEqual([]);
    expect(run(doubtful, seeing({ job: { kind: 'absent' } }), T0 + 9 * MINUTE).actions).toEqual([]);
    expect(run(doubtful, seeing({ job: { kind: 'absent' } }), T0 + 11 * MINUTE).record.state).toBe('stopped');
    expect(run(doubtful, seeing({ job: job() }), T0 + MINUTE).record.attempt?.phase).toBe('created');
  });

  test('resume while still stopping starts the next attempt when the job is over', () => {
    const stopping = run(asked(), seeing({ job: job() })).record;
    const back = askResume(stopping, T0)?.record ?? stopping;
    const after = run(back, seeing({ job: job({ status: 'Stopped', secondaryStatus: 'Stopped' }) }, [100]));
    expect(after.record).toMatchObject({ state: 'resuming', budgets: { failures: 0, stale: 0 } });
  });

  test('resume of a stopped run joins the queue with the next attempt number', () => {
    const stopped = run(asked(), seeing({ job: job({ status: 'Stopped', secondaryStatus: 'Stopped' }) }, [100])).record;
    expect(stopped.state).toBe('stopped');
    const queued = askResume(stopped, T0)?.record;
    expect(queued).toMatchObject({ state: 'queued', admitted: false, desired: 'run' });
    const next = run({ ...(queued ?? stopped), admitted: true }, seeing({}, [100]));
    expect(next.effects).toMatchObject([{ attempt: 2, resumeFrom: { step: 100 } }]);
  });

  test('from outside ends the run as stopped and tells somebody; nobody is fought', () => {
    const after = run(running(), seeing({ job: job({ status: 'Stopped', secondaryStatus: 'Stopped' }) }));
    expect(after.record).toMatchObject({ state: 'stopped', desired: 'stop' });
    expect(after.notices).toEqual(['outside-stop']);
  });
});

describe('spend cap', () => {
  const capped = (maxCostUsd: number) => running({ policy: policy({ maxCostUsd }) });

  test('stops at a checkpoint when the next interval would cross it', () => {
    const noCommit = run(capped(120), seeing({ job: job() }));
    expect(noCommit.effects).toEqual([]);
    const after = run(capped(120), seeing({ job: job() }, [100]));
    expect(after.effects).toMatchObject([{ do: 'stop' }]);
    expect(after.record.attempt?.stop?.why).toBe('spend');
    const ended = run(after.record, seeing({ job: job({ status: 'Stopped', secondaryStatus: 'Stopped' }) }, [100]));
    expect(ended.record.state).toBe('stopped');
    expect(ended.notices).toEqual(['spend-cap']);
  });

  test('stops without one beyond it', () => {
    const { effects, record } = run(capped(90), seeing({ job: job() }));
    expect(effects).toMatchObject([{ do: 'stop' }]);
    expect(record.attempt?.stop?.why).toBe('spend');
  });

  test('fails: no new attempt that could not reach a checkpoint within it', () => {
    const spent = admitted({ policy: policy({ maxCostUsd: 100 }), spentUsd: 80 });
    expect(run(spent, seeing()).record).toMatchObject({ state: 'failed' });
  });
});

describe('notices', () => {
  test('stay in the outbox until they are published, and are said once', () => {
    const done = run(running(), seeing({ job: job({ status: 'Completed', secondaryStatus: 'Completed' }) }));
    const id = done.record.outbox[0]?.id ?? '';
    const again = run(done.record, seeing());
    expect(again.actions.map((a) => a.do)).toEqual(['notify']);
    const published = run(done.record, seeing({ published: [id] }));
    expect(published.record.outbox).toEqual([]);
    expect(run(published.record, seeing()).actions).toEqual([]);
  });
});

describe('the state of a live job', () => {
  const stateAt = (secondaryStatus: string, changes: object = {}, own: object = {}) =>
    run(running({ state: 'pending', ...changes, attempt: attempt(own) }), seeing({ job: job({ secondaryStatus }) }))
      .record.state;

  test('is pending before the first attempt trains, resuming before a later one does or after it was interrupted', () => {
    expect(stateAt('Starting')).toBe('pending');
    expect(stateAt('Starting', {}, { number: 2 })).toBe('resuming');
    expect(stateAt('Interrupted', { state: 'running' })).toBe('resuming');
    expect(stateAt('Starting', { state: 'resuming' })).toBe('resuming');
  });

  test('is running while it trains and uploads', () => {
    expect(stateAt('Training')).toBe('running');
    expect(stateAt('Uploading')).toBe('running');
  });
});
