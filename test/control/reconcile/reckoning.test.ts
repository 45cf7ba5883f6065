// What reconcile counts beside its runs: metrics of teams, budgets that hold teams back; and what it says where a read fails.
import { beforeEach, describe, expect, test } from 'vitest';
import { teamHolds } from '../../../lib/control/reconcile/queue/others-usage';
import { poolsOf } from '../../../lib/control/reconcile/queue/queue-pools';
import { reconcileRun } from '../../../lib/control/reconcile/reconcile-run';
import { teamStates, writeTeamMetrics } from '../../../lib/control/reconcile/team-page';
import type { RunRecord } from '../../../lib/core/lifecycle/record';
import { admitted, attempt, running } from '../../core/lifecycle/support/records';
import { serviceError } from '../support/fake-sagemaker';
import { type FakeWorld, fakeWorld, MINUTE, START } from '../support/fake-world';

let world: FakeWorld;
let lines: Record<string, unknown>[];
let said: [string, Record<string, unknown>][];
beforeEach(() => {
  world = fakeWorld();
  [lines, said] = [[], []];
  const write = (line: string) => lines.push(JSON.parse(line));
  const log = (_: string, message: string, details: Record<string, unknown>) => said.push([message, details]);
  Object.assign(world.reconcile, { metrics: { teams: ['nlp'], write }, log });
});

describe('runs that failed', () => {
  // START is a whole multiple of five minutes.
  const failedAt = async (...endings: Partial<RunRecord>[]) => {
    world.store.ofTeam = async () => endings.map((ending, i) => running({ runId: `r-${i}`, ...ending }));
    await writeTeamMetrics(world.reconcile, [], teamStates(world.reconcile, []));
    return lines.at(-1)?.RunsFailed;
  };

  test.each([
    [-5 * MINUTE - 1, 0],
    [-5 * MINUTE, 1],
    [-1, 1],
    [0, 0],
  ])('%i ms after the last full five minutes count %i', async (after, count) => {
    expect(await failedAt({ state: 'failed', endedAt: START + after })).toBe(count);
  });

  test('are those alone: not what completed, was stopped, or has no end', async () => {
    const endedAt = START - 1;
    expect(await failedAt({ state: 'completed', endedAt }, { state: 'stopped', endedAt }, { state: 'failed' })).toBe(0);
  });
});

test('without metrics nothing is read and nothing written', async () => {
  let reads = 0;
  world.store.ofTeam = async () => {
    reads += 1;
    return [];
  };
  world.reconcile.metrics = undefined;
  await writeTeamMetrics(world.reconcile, [running()], teamStates(world.reconcile, [running()]));
  expect([reads, lines, said]).toEqual([0, [], []]);
});

describe('teams that may start nothing', () => {
  const waiting = (more: Partial<RunRecord> = {}) => admitted({ admitted: false, state: 'queued', ...more });

  test('are looked for among those with a new run that waits, each once', async () => {
    const asked: string[] = [];
    world.describe({ budget: { usdPerMonth: 10 } });
    world.store.findMonthUsd = async (team) => {
      asked.push(team);
      return 0;
    };
    const resumed = waiting({ runId: 'c', team: 'vision', attempt: attempt() });
    const holds = await teamHolds(world.reconcile, [
      waiting(),
      waiting({ runId: 'b' }),
      resumed,
      running({ team: 'audio' }),
    ]);
    expect([...holds]).toEqual([]);
    expect(asked).toEqual(['nlp']);
  });

  test('fails: a team whose budget cannot be read is held back, and said', async () => {
    world.describe({ budget: { usdPerMonth: 10 } });
    world.store.findMonthUsd = () => Promise.reject(new Error('throttled'));
    expect([...(await teamHolds(world.reconcile, [waiting()]))]).toEqual([
      ['nlp', 'waits: the budget of team nlp cannot be read'],
    ]);
    expect(said).toEqual([['the budget of a team could not be read', { team: 'nlp', error: 'Error: throttled' }]]);
  });
});

describe('what cannot be read is said with what it is about', () => {
  test('the guardrail of the environment', async () => {
    world.ssm.rejects(new Error('no parameter'));
    await poolsOf(world.reconcile, [running()], []);
    expect(said).toContainEqual([
      'guardrails could not be read; nothing starts',
      { team: 'nlp', error: 'Error: no parameter' },
    ]);
  });

  test('jobs of others', async () => {
    world.sagemaker.mock.rejects(serviceError('ThrottlingException', 'Rate exceeded', 400));
    await poolsOf(world.reconcile, [], []);
    expect(said).toContainEqual([
      'what other jobs use could not be read',
      { error: expect.stringContaining('Rate exceeded') },
    ]);
  });

  test('a run that is not there', async () => {
    await reconcileRun(world.reconcile, 'gone-1');
    expect(said).toEqual([['no such run', { runId: 'gone-1' }]]);
  });

  test('the descriptor of a run, and how many objects of a run that is over will expire', async () => {
    const runId = await world.launch();
    const job = `research-${runId}-a001`;
    world.train(job);
    world.s3.put(`checkpoint-bucket/runs/nlp/${runId}/step-5/shard-0`, 'torn');
    await world.tick();
    world.end(job, 'Completed');
    await world.tick();
    expect(said).toContainEqual(['objects of uncommitted checkpoints will expire', { runId, found: 1, tagged: 1 }]);
    said.length = 0;
    const other = await world.launch();
    world.ssm.rejects(new Error('no parameter'));
    world.pass(2 * 3_600_000);
    world.end(`research-${other}-a001`, 'Failed', 'InternalServerError: x');
    await reconcileRun(world.reconcile, other);
    expect(said).toContainEqual([
      'the descriptor could not be read',
      { runId: other, team: 'nlp', error: 'Error: no parameter' },
    ]);
  });

  test('a run that leaves nothing behind says nothing of it', async () => {
    const runId = await world.launch();
    world.train(`research-${runId}-a001`);
    await world.tick();
    world.end(`research-${runId}-a001`, 'Completed');
    await world.tick();
    expect(said.map(([message]) => message)).not.toContain('objects of uncommitted checkpoints will expire');
  });
});
