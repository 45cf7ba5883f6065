import { describe, expect, test } from 'vitest';
import { admitRun, askHandOver, askResume, askStop, confirmRun, writeNote } from '../../../lib/core/lifecycle/intent';
import type { Attempt, RunRecord, RunState } from '../../../lib/core/lifecycle/record';
import { admitted, attempt, HOUR, policy, running, T0 } from './support/records';

const OVER: RunState[] = ['completed', 'failed', 'stopped'];
const open = (changes: Partial<RunRecord> = {}) => admitted({ confirmed: false, admitted: false, ...changes });

describe('confirming the uploads', () => {
  test('puts the run into the queue now, or at its own time', () => {
    expect(confirmRun(open(), T0 + HOUR)?.record).toMatchObject({
      confirmed: true,
      state: 'queued',
      queuedAt: T0 + HOUR,
      reason: 'waiting in the queue',
      version: 2,
    });
    const later = confirmRun(open({ notBefore: T0 + 2 * HOUR }), T0 + HOUR)?.record;
    expect(later).toMatchObject({ queuedAt: T0 + 2 * HOUR, reason: 'waiting until 2026-11-21T14:00:00.000Z' });
    expect(confirmRun(open({ notBefore: T0 }), T0 + HOUR)?.record.queuedAt).toBe(T0 + HOUR);
  });

  test('twice changes nothing, nor does it of a run that is over', () => {
    expect(confirmRun(admitted(), T0)).toBeUndefined();
    for (const state of OVER) expect(confirmRun(open({ state }), T0)).toBeUndefined();
  });
});

test.each<[string, Partial<RunRecord>]>([
  ...OVER.map((state): [string, Partial<RunRecord>] => [state, { state }]),
  ['asked already', { desired: 'stop' }],
])('a stop changes nothing of a run that is %s', (_, changes) => {
  expect(askStop(admitted(changes), 'x', T0)).toBeUndefined();
});

test('a stop does not wait for the time of the next attempt', () => {
  expect(askStop(admitted({ notBefore: T0 + HOUR }), 'enough', T0)?.record).toMatchObject({
    desired: 'stop',
    reason: 'enough',
  });
});

describe('a resume', () => {
  const BUDGETS = { failures: 3, stale: 1, stalePlatform: 1, byClass: { loss: 2 }, capacityTries: 4 };
  const over = (changes: Partial<RunRecord> = {}) =>
    admitted({ state: 'failed', desired: 'stop', budgets: BUDGETS, alerts: ['a/b'], endedAt: T0, ...changes });

  test.each<RunState>(['failed', 'stopped'])(
    'of a %s run joins the queue with fresh budgets and may tell all again',
    (state) => {
      const { record, events } = askResume(over({ state, notBefore: T0 + HOUR }), T0 + 2 * HOUR) ?? {};
      expect(record).toMatchObject({
        state: 'queued',
        desired: 'run',
        admitted: false,
        queuedAt: T0 + 2 * HOUR,
        notBefore: undefined,
        endedAt: undefined,
        alerts: [],
        capacityOptionId: 'as-written',
      });
      expect(record?.budgets).toEqual({ failures: 0, stale: 0, stalePlatform: 0, byClass: {}, capacityTries: 0 });
      expect(events).toMatchObject([{ what: 'resume-asked', evidence: { from: state } }]);
    },
  );

  test('of a run that is not elastic keeps its capacity option and the room of none', () => {
    const fixed = over({ capacityOptionId: 'on-demand', reservation: { capacityOptionId: 'x', since: T0 } });
    expect(askResume(fixed, T0)?.record).toMatchObject({
      capacityOptionId: 'on-demand',
      reservation: { capacityOptionId: 'x' },
    });
    const option = (id: string) => ({ id, instances: [], usage: 'training' as const, usdPerHour: 1 });
    const sizes = policy({ pendingSeconds: 7200, capacityOptions: [option('as-written'), option('as-written@1')] });
    const elastic = over({
      policy: sizes,
      capacityOptionId: 'as-written@1',
      reservation: { capacityOptionId: 'x', since: T0 },
    });
    expect(askResume(elastic, T0)?.record).toMatchObject({ capacityOptionId: 'as-written', reservation: undefined });
  });

  test('of one that is stopping only takes the stop back', () => {
    const { record } = askResume(running({ desired: 'stop', budgets: BUDGETS }), T0) ?? {};
    expect(record).toMatchObject({ desired: 'run', state: 'running', budgets: BUDGETS });
  });

  test('of one whose job leaves for another reason states that reason again', () => {
    const asked = (own: Partial<Attempt>) =>
      askResume(running({ desired: 'stop', reason: 'stop asked by team nlp', attempt: attempt(own) }), T0)?.record
        .reason;
    expect(asked({ stop: { why: 'spend', at: T0, text: 'spent $300' } })).toBe('spent $300');
    expect(asked({ handOver: { why: 'preempted', at: T0, text: 'asked to make room' } })).toBe('asked to make room');
    expect(asked({})).toBe('resumed while it was being stopped');
  });

  test.each<[string, Partial<RunRecord>]>([
    ['goes on', { state: 'running', desired: 'run' }],
    ['is completed', { state: 'completed' }],
    ['never had its uploads', { confirmed: false }],
  ])('changes nothing of a run that %s', (_, changes) => {
    expect(askResume(over(changes), T0)).toBeUndefined();
  });
});

describe('letting a run start', () => {
  test('on its own capacity option says nothing of capacity options; on another one it says which', () => {
    expect(admitRun(admitted(), 'room', T0).events[0]?.evidence).toEqual({});
    const smaller = admitRun(admitted(), 'room', T0, 'as-written@1');
    expect(smaller.events[0]?.evidence).toEqual({ rung: 'as-written@1' });
    expect(smaller.record).toMatchObject({
      admitted: true,
      admittedAt: T0,
      state: 'submitting',
      capacityOptionId: 'as-written@1',
    });
  });

  test('takes an attempt without a job along, and leaves one that is over on its capacity option', () => {
    const optionOf = (phase: 'intent' | 'ended') =>
      admitRun(admitted({ attempt: attempt({ phase }) }), 'room', T0, 'as-written@1').record.attempt?.capacityOptionId;
    expect(optionOf('intent')).toBe('as-written@1');
    expect(optionOf('ended')).toBe('as-written');
  });
});

test('only a live job can be asked to leave', () => {
  const wanted = { why: 'preempted', at: T0, text: 'x' } as const;
  const phase = (of: 'intent' | 'created') => askHandOver(running({ attempt: attempt({ phase: of }) }), wanted);
  expect(phase('intent')).toBeUndefined();
  expect(phase('created')?.record).toMatchObject({ reason: 'x', attempt: { handOver: wanted } });
  const stopping = attempt({ stop: { why: 'user', at: T0, text: '' } });
  expect(askHandOver(running({ attempt: stopping }), wanted)).toBeUndefined();
  expect(askHandOver(admitted(), wanted)).toBeUndefined();
});

test('a note that says the same is not written again', () => {
  expect(writeNote(admitted({ note: 'a' }), 'a', T0)).toBeUndefined();
  expect(writeNote(admitted({ note: 'a' }), 'b', T0)?.record.note).toBe('b');
});
