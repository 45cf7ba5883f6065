// Promises about money (docs/guides/costs.md), each with a test that tries to break it.
import { describe, expect, test } from 'vitest';
import { type FakeWorld, fakeWorld, RUN_FILE } from '../control/support/fake-world';

function pricedWorld(usdPerHour: number, extras: Record<string, unknown> = {}): FakeWorld {
  const world = fakeWorld();
  world.limits.set('ml.m5.xlarge for training job usage', { value: 400 });
  world.describe({ prices: { 'ml.m5.xlarge': usdPerHour }, ...extras });
  return world;
}

let requests = 0;
async function startErrors(world: FakeWorld, runFile: string): Promise<string[]> {
  requests += 1;
  const answer = await world.ask({ action: 'start', runFile, clientRequestId: `money-${requests}` });
  return 'issues' in answer ? answer.issues.filter(({ level }) => level === 'error').map(({ message }) => message) : [];
}

async function trainFor(world: FakeWorld, runId: string, hours: number): Promise<void> {
  world.train(`research-${runId}-a001`);
  for (let i = 0; i < hours * 12; i++) await world.tick(5);
}

const spentOn = async (world: FakeWorld, runId: string): Promise<number | null> =>
  ((await world.ask({ action: 'status', runId })) as unknown as { spendUsd: number | null }).spendUsd;

describe('guardrails.maxCostPerRunUsd', () => {
  const guarded = (usdPerHour = 10) => pricedWorld(usdPerHour, { guardrails: { maxCostPerRunUsd: 100 } });

  test('stops a run that names no cap of its own', async () => {
    const world = guarded();
    const runId = await world.launch();
    await trainFor(world, runId, 24);
    expect(world.sagemaker.calls.stop).toBeGreaterThan(0);
    const reason = ((await world.ask({ action: 'status', runId })) as unknown as { reason: string }).reason;
    expect(reason).toContain('guardrails.maxCostPerRunUsd $100.00');
  });

  test('fails: a run with a larger cap', async () => {
    expect(await startErrors(guarded(), `${RUN_FILE}limits: { maxCostUsd: 101 }\n`)).toEqual([
      expect.stringContaining('limits.maxCostUsd: must be at most 100 in environment research, got 101'),
    ]);
  });

  test('fails: a run that is planned to cost more, although it names no cap', async () => {
    const big = RUN_FILE.replace('steps: 100', 'steps: 1000000000')
      .replace('ml.m5.xlarge', 'ml.p4d.24xlarge')
      .replace('globalBatchSize: 4', 'globalBatchSize: 16');
    const errors = await startErrors(guarded(), big);
    expect(errors).toEqual([
      expect.stringMatching(
        /^guardrails\.maxCostPerRunUsd: must be at least the \$\d+ that the whole run is planned to cost, got 100; /,
      ),
    ]);
  });

  test('keeps the smaller cap of the run', async () => {
    const world = guarded();
    const runId = await world.launch(`${RUN_FILE}limits: { maxCostUsd: 20 }\n`);
    await trainFor(world, runId, 3);
    expect(world.sagemaker.calls.stop).toBeGreaterThan(0);
  });
});

describe('an environment or a team that limits what runs cost', () => {
  test.each([
    ['guardrails limit what a run costs', { guardrails: { maxCostPerRunUsd: 100 } }],
    ['team budget limits what runs cost', { budget: { usdPerMonth: 100 } }],
  ])('fails: a run whose price is not known, also when a person accepts that: %s', async (whose, limit) => {
    const world = pricedWorld(10);
    world.describe(limit);
    const runFile = RUN_FILE.replace('ml.m5.xlarge', 'ml.c5n.18xlarge').replace(
      'data:',
      'limits: { maxCostUsd: 50 }\ndata:',
    );
    const answer = await world.ask({
      action: 'start',
      runFile,
      clientRequestId: 'unpriced',
      acceptsUnknownPrice: true,
    });
    const errors =
      'issues' in answer ? answer.issues.filter(({ level }) => level === 'error').map(({ message }) => message) : [];
    expect(errors.filter((line) => line.includes('price'))).toEqual([
      expect.stringContaining(`compute.instanceType: must have a known price in environment research, whose ${whose}`),
    ]);
  });
});

describe('teams.<team>.budgetUsdPerMonth', () => {
  const BUDGET = { budget: { usdPerMonth: 30 } };

  test('fails: a start after the month is spent, behind 1,000 newer runs', async () => {
    const world = pricedWorld(10, BUDGET);
    const runId = await world.launch();
    await trainFor(world, runId, 4);
    world.describe({ prices: { 'ml.m5.xlarge': 10 } });
    const runFile = RUN_FILE.replace('pretrain', 'next');
    const next = await world.ask({ action: 'start', runFile, clientRequestId: 'next' });
    if (!('runId' in next)) throw new Error(JSON.stringify(next));
    world.copyRun(next.runId, 999);
    expect((await world.store.ofTeam('nlp', 2000)).findIndex((run) => run.runId === runId)).toBe(1000);
    world.pass(1_000_000);
    world.describe({ prices: { 'ml.m5.xlarge': 10 }, ...BUDGET });
    world.end(`research-${runId}-a001`, 'Completed');
    await world.tick(5);
    expect(await startErrors(world, RUN_FILE)).toEqual([
      expect.stringMatching(/^teams\.nlp\.budgetUsdPerMonth: must not be spent: 30 USD this month, got 8\d\.\d\d USD/),
    ]);
  });

  test('counts what a live job has cost so far', async () => {
    const world = pricedWorld(10, BUDGET);
    const runId = await world.launch();
    await trainFor(world, runId, 4);
    expect(await startErrors(world, RUN_FILE.replace('pretrain', 'next'))).toEqual([
      expect.stringContaining('must not be spent'),
    ]);
    expect(await spentOn(world, runId)).toBeGreaterThan(30);
  });

  test('begins each month at zero', async () => {
    const world = pricedWorld(10, BUDGET);
    const runId = await world.launch();
    await trainFor(world, runId, 4);
    world.end(`research-${runId}-a001`, 'Completed');
    await world.tick(5);
    world.pass(20 * 86_400_000);
    expect(await startErrors(world, RUN_FILE.replace('pretrain', 'next'))).toEqual([]);
  });
});

describe('a training plan that another team bought', () => {
  const theirs = 'arn:aws:sagemaker:us-west-2:111122223333:training-plan/theirs';
  const planned = RUN_FILE.replace('ml.m5.xlarge', `ml.p4d.24xlarge, trainingPlanArn: "${theirs}"`);

  test('fails: a run that would occupy its instances', async () => {
    const world = fakeWorld();
    world.describe({ foreignTrainingPlans: [theirs] });
    expect(await startErrors(world, planned)).toEqual(
      expect.arrayContaining([expect.stringContaining('compute.trainingPlanArn: must be a plan of the own team')]),
    );
  });

  test('is one that no other team names, and then may be used', async () => {
    const errors = await startErrors(fakeWorld(), planned);
    expect(errors.filter((error) => error.includes('must be a plan of the own team'))).toEqual([]);
  });
});
