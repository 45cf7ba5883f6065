import { beforeEach, expect, test } from 'vitest';
import { type FakeWorld, fakeWorld, RUN_FILE } from '../support/fake-world';

let world: FakeWorld;
beforeEach(() => {
  world = fakeWorld();
});
const refusalOf = async (payload: unknown) => {
  const answer = await world.ask(payload as never);
  if (answer.ok) throw new Error('the payload must be refused');
  return answer.issues;
};
const FIX = 'correct it, or use a command line of the version of the environment';

test.each([
  [{ action: 'stop', runId: 'a-1', reason: 'x'.repeat(513) }, 'reason', `got ${'x'.repeat(77)}...; ${FIX}`],
  [{ action: 'start', runId: 'A B', confirm: true }, 'runId', `got A B; ${FIX}`],
  [{ action: 'start', runFile: RUN_FILE, clientRequestId: 'a b' }, 'clientRequestId', `got a b; ${FIX}`],
  [{ action: 'list', limit: 0 }, 'limit', `got 0; ${FIX}`],
  [{ action: 'status', runId: 'a-1', timeline: 'yes' }, 'timeline', `got yes; ${FIX}`],
  [{ action: 'restart', runId: 'a-1' }, 'action', `got restart; ${FIX}`],
])('fails: %j is refused at its field, with what was given', async (payload, path, end) => {
  expect(await refusalOf(payload)).toEqual([
    { rule: 'control/payload', level: 'error', path, message: expect.stringMatching(new RegExp(`^${path}: .*`)) },
  ]);
  const [issue] = await refusalOf(payload);
  expect(issue?.message.endsWith(end)).toBe(true);
});

test.each([
  [{ action: 'status' }, 'runId'],
  [{ action: 'status', runId: ['x'] }, 'runId'],
  [{ action: 'list', limit: null }, 'limit'],
  [{}, 'action'],
])('fails: of %j the message leaves out a value that no line can show', async (payload, path) => {
  expect(await refusalOf(payload)).toMatchObject([{ path, message: expect.not.stringContaining(', got ') }]);
});

test('fails: every mistake of a payload is named at once', async () => {
  const issues = await refusalOf({ action: 'logs', runId: 'A', attempt: 0, host: 0 });
  expect(issues.map(({ path }) => path)).toEqual(['runId', 'attempt', 'host']);
  expect(world.table.items.size).toBe(0);
});
