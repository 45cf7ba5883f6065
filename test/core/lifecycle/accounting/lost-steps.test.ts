import { describe, expect, test } from 'vitest';
import { event } from '../../../../lib/core/lifecycle/action';
import { ledger, lostTime } from '../../../../lib/core/lifecycle/ledger';
import { MINUTE, T0 } from '../support/records';

const at = (minutes: number, what: string, evidence = {}) => event(T0 + minutes * MINUTE, what, '', evidence);
const first = (minutes: number, attempt: number, start: number, step: number) =>
  at(minutes, 'first-step', { attempt, start, step });
const last = (minutes: number, attempt: number, start: number, step: number) =>
  at(minutes, 'last-step', { attempt, start, step });
const ended = (minutes: number, failureClass = 'platform') => at(minutes, 'attempt-ended', { failureClass });
const lost = (...lines: ReturnType<typeof at>[]) =>
  lostTime(lines).map(({ from, to, cause }) => [cause, (from - T0) / MINUTE, (to - T0) / MINUTE]);

describe('steps that a later start took again', () => {
  test('are lost from the end of the last one that was kept, by the mean step time, until the ranks had left', () => {
    // Steps 1 to 21 in 20 minutes; the next start begins with step 11, so that 10 were kept, which ended at minute 19.
    const lines = [first(10, 1, 0, 1), last(30, 1, 0, 21), at(35, 'ranks-restarted'), first(40, 1, 1, 11)];
    expect(lost(...lines)).toEqual([['lost', 19, 35]]);
    expect(lost(...lines, last(50, 1, 1, 20), first(60, 1, 2, 21))).toEqual([
      ['lost', 19, 35],
      ['lost', 50, 50],
    ]);
  });

  test('are all lost where the next start begins before them', () => {
    expect(lost(first(10, 1, 0, 5), last(30, 1, 0, 9), at(31, 'ranks-restarted'), first(40, 1, 1, 1))).toEqual([
      ['lost', 10, 31],
    ]);
  });

  test('count by the earliest step of all later starts', () => {
    const lines = [first(10, 1, 0, 1), last(30, 1, 0, 21), first(40, 1, 1, 16), last(41, 1, 1, 16), first(50, 2, 0, 6)];
    expect(lost(...lines)[0]).toEqual(['lost', 14, 30]);
  });

  test('are kept where the next start goes on behind them: only the time to the end of its ranks is lost', () => {
    expect(lost(first(10, 1, 0, 1), last(30, 1, 0, 21), at(33, 'ranks-restarted'), first(40, 1, 1, 22))).toEqual([
      ['lost', 30, 33],
    ]);
  });

  test('of one step are lost with it', () => {
    expect(lost(first(10, 1, 0, 5), last(10, 1, 0, 5), at(12, 'ranks-restarted'), first(40, 1, 1, 5))).toEqual([
      ['lost', 10, 12],
    ]);
  });

  test('are those of the same attempt and start', () => {
    const lines = [first(10, 1, 0, 1), first(40, 1, 1, 1), last(50, 2, 0, 30), last(51, 1, 2, 30)];
    expect(lost(...lines)).toEqual([]);
    expect(lost(...lines, last(52, 1, 0, 43))[0]).toEqual(['lost', 10, 52]);
  });
});

describe('where nothing was timed', () => {
  test('what came after the last commit, or since the attempt was intended, is lost', () => {
    expect(lost(at(0, 'attempt-intended'), ended(50))).toEqual([['lost', 0, 50]]);
    expect(lost(at(0, 'attempt-intended'), at(30, 'checkpoint-committed'), ended(50))).toEqual([['lost', 30, 50]]);
    expect(lost(at(0, 'attempt-intended'), ended(50), at(51, 'attempt-intended'), ended(70))).toEqual([
      ['lost', 0, 50],
      ['lost', 51, 70],
    ]);
  });

  test('a hang begins with the last movement that was seen', () => {
    const stop = (why: string, movedAt?: number) =>
      at(40, 'stop-decided', { why, progress: movedAt === undefined ? null : { movedAt: T0 + movedAt * MINUTE } });
    const hang = (line: ReturnType<typeof at>, failureClass = 'hang') =>
      lost(at(0, 'attempt-intended'), line, ended(50, failureClass)).filter(([cause]) => cause === 'hang');
    expect(hang(stop('hang', 20))).toEqual([['hang', 20, 50]]);
    expect(hang(stop('user', 20))).toEqual([]);
    expect(hang(stop('hang'))).toEqual([]);
    expect(hang(stop('hang', 20), 'platform')).toEqual([]);
  });

  test('a movement belongs to its attempt alone', () => {
    const moved = at(40, 'stop-decided', { why: 'hang', progress: { movedAt: T0 } });
    const lines = [
      at(0, 'attempt-intended'),
      moved,
      ended(50, 'platform'),
      at(60, 'attempt-intended'),
      ended(70, 'hang'),
    ];
    expect(lost(...lines).filter(([cause]) => cause === 'hang')).toEqual([]);
  });
});

test('a timed start that nothing follows loses what came after the last commit', () => {
  const lines = [
    at(0, 'attempt-intended'),
    first(10, 1, 0, 1),
    at(20, 'checkpoint-committed'),
    last(30, 1, 0, 21),
    ended(40),
  ];
  expect(lost(...lines)).toEqual([['lost', 20, 40]]);
  const next = [at(41, 'attempt-intended'), first(50, 2, 0, 22)];
  expect(lost(...lines, ...next)).toEqual([['lost', 30, 40]]);
});

test('a hang of a timed start begins with its last step, where that came before the movement that was seen', () => {
  const stop = at(60, 'stop-decided', { why: 'hang', progress: { movedAt: T0 + 35 * MINUTE } });
  const lines = [at(0, 'attempt-intended'), first(10, 1, 0, 1), last(30, 1, 0, 21), stop, ended(70, 'hang')];
  expect(lost(...lines)).toContainEqual(['hang', 30, 70]);
});

test('the ledger counts a step that was taken twice once', () => {
  const lines = [
    at(0, 'run-admitted'),
    at(0, 'attempt-intended'),
    at(0, 'job-created'),
    first(10, 1, 0, 1),
    last(30, 1, 0, 21),
    at(30, 'ranks-restarted', { attempt: 1, start: 0 }),
    first(40, 1, 1, 11),
    last(50, 1, 1, 21),
    at(50, 'run-completed'),
  ];
  expect(ledger(lines, T0 + 60 * MINUTE).seconds).toMatchObject({ step: (9 + 10) * 60, lost: 11 * 60 });
});
