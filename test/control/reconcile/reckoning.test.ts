// What reconcile counts beside its runs: metrics of teams, use of quotas, budgets that hold teams back; and what it says where a read fails.
import { PublishCommand } from '@aws-sdk/client-sns';
import { beforeEach, describe, expect, test } from 'vitest';
import { teamHolds } from '../../../lib/control/reconcile/queue/others-usage';
import { poolsOf } from '../../../lib/control/reconcile/queue/queue-pools';
import { writeQuotaUse } from '../../../lib/control/reconcile/quota-metric';
import { reconcileRun } from '../../../lib/control/reconcile/reconcile-run';
import { writeTeamMetrics } from '../../../lib/control/reconcile/team-metrics';
import { teamStates } from '../../../lib/control/reconcile/team-page';
import type { RunRecord } from '../../../lib/core/lifecycle/record';
import { admitted, attempt, policy, running } from '../../core/lifecycle/support/records';
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
  Object.assign(world.reconcile, { metrics: { teams: ['nlp'], quotaPercent: 50, write }, log });
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
  await writeQuotaUse(world.reconcile, [running()]);
  expect([reads, lines, said]).toEqual([0, [], []]);
});

describe('the fullest quota', () => {
  const TYPE = 'ml.p5.48xlarge for';
  const usage = async (...runs: RunRecord[]) => {
    for (const kind of ['training job', 'spot training job', 'processing job', 'training warm pool'])
      world.limits.set(`${TYPE} ${kind} usage`, { value: 8 });
    await writeQuotaUse(world.reconcile, runs);
    const { quota, inUse, limit, QuotaUsePercent } = lines.at(-1) ?? {};
    return { quota, inUse, limit, QuotaUsePercent };
  };
  const withOption = (option: object, more: Partial<RunRecord> = {}) =>
    running({ policy: policy({ capacityOptions: [{ ...policy().capacityOptions[0], ...option } as never] }), ...more });

  test.each([
    ['training', 'training job'],
    ['spot', 'spot training job'],
    ['processing', 'processing job'],
  ])('of a capacity option of %s is that of %s usage', async (use, quota) => {
    expect(await usage(withOption({ usage: use }))).toEqual({
      quota: `${TYPE} ${quota} usage`,
      inUse: 2,
      limit: 8,
      QuotaUsePercent: 25,
    });
  });

  test('is none where nothing is held: no attempt, only an intent, a training plan, a capacity option that is gone', async () => {
    const none = { quota: undefined, inUse: undefined, limit: undefined, QuotaUsePercent: 0 };
    for (const run of [
      admitted(),
      running({ attempt: attempt({ phase: 'intent' }) }),
      withOption({ usage: 'training-plan' }),
      running({ attempt: attempt({ capacityOptionId: 'gone' }) }),
    ])
      expect(await usage(run)).toEqual(none);
  });

  test('counts the instances that the service has chosen, where it may choose', async () => {
    const selected = { instanceType: 'ml.p5.48xlarge', instanceCount: 7 };
    expect(await usage(running({ attempt: attempt({ selected }) }))).toMatchObject({ inUse: 7, QuotaUsePercent: 88 });
  });

  test('is told of from the percentage of the alarm on, and not below', async () => {
    await usage(withOption({ instances: [{ instanceType: 'ml.p5.48xlarge', instanceCount: 3 }] }));
    expect(world.published).toEqual([]);
    await usage(withOption({ instances: [{ instanceType: 'ml.p5.48xlarge', instanceCount: 4 }] }));
    expect(world.published).toHaveLength(1);
    // The alarm ends after two ticks below.
    for (let tick = 0; tick < 2; tick++)
      await usage(withOption({ instances: [{ instanceType: 'ml.p5.48xlarge', instanceCount: 3 }] }));
    await usage(withOption({ instances: [{ instanceType: 'ml.p5.48xlarge', instanceCount: 8 }] }));
    expect(world.published).toHaveLength(2);
  });

  test('is told of in a subject that SNS takes: 100 characters', async () => {
    const instances = [{ instanceType: 'ml.p5.48xlarge', instanceCount: 8 }];
    world.reconcile.environment = 'e'.repeat(90);
    await usage(withOption({ instances }));
    expect(world.sns.commandCalls(PublishCommand)[0]?.args[0].input.Subject).toHaveLength(100);
  });

  test('fails: what cannot be read or told is said', async () => {
    world.sns.on(PublishCommand).rejects(new Error('no topic'));
    await usage(withOption({ instances: [{ instanceType: 'ml.p5.48xlarge', instanceCount: 8 }] }));
    expect(said).toEqual([['the use of quotas was not written', { error: 'Error: no topic' }]]);
  });
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
