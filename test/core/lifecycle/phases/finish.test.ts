import { describe, expect, test } from 'vitest';
import type { Attempt, RunRecord } from '../../../../lib/core/lifecycle/record';
import {
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
} from '../support/records';

const LOST = 'InternalServerError: x';
const NOW = T0 + 2 * HOUR;
const end = (record: RunRecord, over = failedJob(LOST), steps: number[] = [100], more: object = {}) =>
  run(record, seeing({ job: over, ...more }, steps), NOW);
const over = (own: Partial<Attempt> = {}, jobSeen = failedJob(LOST), more: object = {}) =>
  end(running({ attempt: attempt(own) }), jobSeen, [100], more).record.attempt;

describe('the last step of an attempt', () => {
  const heartbeat = (step: number | null, of = 1) => ({
    heartbeat: { attempt: of, step, phase: '', writtenAt: T0 + HOUR },
  });

  test('is the newest of the metric and the last heartbeat', () => {
    expect(over({}, failedJob(LOST, { lastStep: 70 }), heartbeat(60))?.lastStep).toBe(70);
    expect(over({}, failedJob(LOST, { lastStep: 50 }), heartbeat(60))?.lastStep).toBe(60);
    expect(over({}, failedJob(LOST), heartbeat(60))?.lastStep).toBe(60);
    expect(over({}, failedJob(LOST, { lastStep: 0 }), heartbeat(null))?.lastStep).toBe(0);
  });

  test('is what was known before where neither says it', () => {
    expect(over({ lastStep: 40 })?.lastStep).toBe(40);
    expect(over({ lastStep: 40 }, failedJob(LOST), heartbeat(90, 2))?.lastStep).toBe(40);
    expect(over({})?.lastStep).toBeNull();
  });

  test('comes from the timed starts where the heartbeat is gone', () => {
    const start = { number: 0, firstStep: 5, firstStepAt: T0, step: 33, stepAt: T0 + MINUTE, endedAt: null };
    const progress = { step: 30, phase: '', heartbeatAt: T0, movedAt: T0, starts: [start] };
    expect(over({ progress })).toMatchObject({ firstStep: 5, lastStep: 33 });
    expect(over({ progress, firstStep: 2 })).toMatchObject({ firstStep: 2 });
  });
});

describe('what the service says of a job that is over', () => {
  test('goes before what was seen, and what it does not say stays', () => {
    const selected = { instanceType: 'ml.p4d.24xlarge', instanceCount: 2 };
    const own = { selected, pauses: { ms: MINUTE }, trainingStartedAt: T0 };
    expect(over(own, failedJob(LOST, { trainingStartedAt: undefined }))).toMatchObject({ ...own, phase: 'ended' });
    const said = {
      selected: { ...selected, instanceCount: 1 },
      pauses: { ms: 2 * MINUTE },
      trainingStartedAt: T0 + MINUTE,
    };
    expect(over(own, failedJob(LOST, said))).toMatchObject(said);
  });

  test('is booked to its end, or to now where it has none', () => {
    expect(over({}, failedJob(LOST))).toMatchObject({ endedAt: T0 + HOUR, costUsd: 100 });
    expect(over({}, failedJob(LOST, { endedAt: undefined }))).toMatchObject({ endedAt: NOW, costUsd: 200 });
  });

  test('is kept as evidence, of a long reason the first 1,024 characters', () => {
    const actions = end(running(), failedJob(`${LOST}${'y'.repeat(2000)}`)).actions;
    const line = actions.flatMap((a) => (a.do === 'save' ? a.events : [])).find((e) => e.what === 'attempt-ended');
    expect(line?.evidence).toMatchObject({ status: 'Failed', failureClass: 'platform', committedNew: true });
    expect(String(line?.evidence.failureReason)).toHaveLength(1024);
    expect(line?.evidence).not.toHaveProperty('exitCode');
    const coded = end(running(), failedJob('AlgorithmError: exit code: 70')).actions;
    expect(coded.flatMap((a) => (a.do === 'save' ? a.events : [])).map((e) => e.evidence.exitCode)).toContain(70);
  });
});

describe('a commit that is first seen with the end', () => {
  const lines = (record: RunRecord, steps: number[], committedAt?: Record<string, number>) =>
    run(
      record,
      seeing({
        job: failedJob(LOST),
        checkpoints: { kind: 'listed', committed: steps.map((s) => checkpoint(s)), torn: [], committedAt },
      }),
      NOW,
    ).actions.flatMap((a) => (a.do === 'save' ? a.events.map((e) => [e.what, (e.at - T0) / MINUTE]) : []));

  test('comes before the end, at its own time or that of the end', () => {
    expect(lines(running(), [100])).toEqual([
      ['steps-unseen', 60],
      ['checkpoint-committed', 60],
      ['attempt-ended', 120],
    ]);
    expect(lines(running(), [100], { [checkpoint(100).uri]: T0 + MINUTE })).toContainEqual(['checkpoint-committed', 1]);
  });

  test('is not told again', () => {
    const known = running({ committed: checkpoint(100) });
    expect(lines(known, [100]).map(([what]) => what)).not.toContain('checkpoint-committed');
    expect(lines(known, [90]).map(([what]) => what)).not.toContain('checkpoint-committed');
    expect(lines(known, [101]).map(([what]) => what)).toContain('checkpoint-committed');
    expect(lines(running(), [0]).map(([what]) => what)).toContain('checkpoint-committed');
  });
});

describe('a run that is to stop', () => {
  const blind = { checkpoints: { kind: 'unreadable', error: '503' } };

  test('does not wait for a list of its checkpoints', () => {
    expect(end(running({ desired: 'stop' }), failedJob(LOST), [], blind).record.state).toBe('stopped');
    expect(end(running(), failedJob(LOST), [], blind).notices).toEqual(['checkpoints-unreadable']);
  });

  test('says who asked, or what ended it meanwhile', () => {
    const stop = { why: 'user' as const, at: T0, text: 'stop asked by nlp' };
    const reason = (own: Partial<Attempt>) => end(running({ desired: 'stop', attempt: attempt(own) })).record.reason;
    expect(reason({ stop })).toBe('stop asked by nlp');
    expect(reason({})).toBe('stopped as asked; the service failed: InternalServerError: x');
    expect(reason({ stop: { ...stop, why: 'hang' } })).toContain('stopped as asked; ');
  });

  test('is stopped as well when its job was deleted', () => {
    const gone = running({ desired: 'stop', attempt: attempt({ absentSince: T0 }) });
    const { record } = run(gone, seeing({ job: { kind: 'absent' } }, [100]), NOW);
    expect(record).toMatchObject({ state: 'stopped', attempt: { failureClass: 'deleted', status: 'Deleted' } });
    expect(record.reason).toContain('stopped as asked; research-pretrain');
  });
});

test('the last step of a deleted job is the later one of its heartbeat, also without starts, and its last commit', () => {
  const gone = running({ attempt: attempt({ absentSince: T0, lastStep: null }) });
  const lastStep = (step: number | null) => {
    const heartbeat = { attempt: 1, step, phase: 'train', writtenAt: T0 };
    return run(gone, seeing({ job: { kind: 'absent' }, heartbeat }, [100]), NOW).record.attempt?.lastStep;
  };
  expect(lastStep(120)).toBe(120);
  expect(lastStep(null)).toBe(100);
  expect(lastStep(80)).toBe(100);
});

describe('the next attempt', () => {
  test('has its time, or none', () => {
    expect(end(running()).record.notBefore).toBeUndefined();
    const stale = end(running(), failedJob(LOST), []).record;
    expect(stale.notBefore).toBeUndefined();
    const again = end({ ...stale, attempt: attempt({ number: 2 }) }, failedJob(LOST), []).record;
    expect(again.notBefore).toBeGreaterThanOrEqual(NOW + 45_000);
    expect(again.notBefore).toBeLessThanOrEqual(NOW + 75_000);
  });

  test('after an end that a person caused counts nothing', () => {
    const stop = { why: 'user' as const, at: T0, text: '' };
    const stopped = job({ status: 'Stopped', secondaryStatus: 'Stopped', endedAt: NOW });
    const staleAfter = (own: Partial<Attempt>) =>
      end(running({ attempt: attempt(own) }), stopped, []).record.budgets?.stale;
    expect(staleAfter({ stop })).toBe(0);
    expect(staleAfter({ stop: { ...stop, why: 'hand-over' } })).toBe(1);
  });

  test('of a run of one size remembers no size that failed, and keeps no room', () => {
    const none = failedJob('CapacityError: Unable to provision', { trainingStartedAt: undefined });
    const plain = running({
      attempt: attempt({ trainingStartedAt: undefined }),
      reservation: { capacityOptionId: 'x', since: T0 },
    });
    const { record } = end(plain, none);
    expect(record.sizeFailedAt).toBeUndefined();
    expect(record.reservation).toBeDefined();
    const sized = end({ ...plain, policy: policy({ pendingSeconds: 7200 }) }, none).record;
    expect(sized.sizeFailedAt).toBe(NOW);
    expect(sized.reservation).toBeUndefined();
  });
});
