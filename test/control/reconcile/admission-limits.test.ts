// What the queue counts before it lets runs start, and the order in which it does so.
import { beforeEach, describe, expect, test } from 'vitest';
import { queuePositions } from '../../../lib/control/shared/run-answer';
import { serviceError } from '../support/fake-sagemaker';
import { type FakeWorld, fakeWorld, MINUTE, RUN_FILE } from '../support/fake-world';

let world: FakeWorld;
beforeEach(() => {
  world = fakeWorld();
});

const QUOTA = 'ml.m5.xlarge for training job usage';
const nameOf = (runId: string, attempt = 1) => `research-${runId}-a00${attempt}`;
const named = (name: string, more = '') => `${RUN_FILE.replace('name: pretrain', `name: ${name}`)}${more}`;
const alias = (team: string) => `arn:aws:lambda:us-west-2:111122223333:function:slipway-research-control:team-${team}`;

async function start(runFile: string, team = 'nlp'): Promise<string> {
  const clientRequestId = `${team}-${world.now()}`;
  const intent = await world.ask({ action: 'start', runFile, clientRequestId }, alias(team));
  if (!intent.ok || !('uploads' in intent)) throw new Error(JSON.stringify(intent));
  await world.ask({ action: 'start', runId: intent.runId, confirm: true }, alias(team));
  world.pass(1000);
  return intent.runId;
}

const instancesOf = (jobName: string) => world.sagemaker.job(jobName).request.ResourceConfig?.InstanceCount ?? 0;

describe('guardrails.maxConcurrentInstances', () => {
  beforeEach(async () => {
    world.describe({ guardrails: { maxConcurrentInstances: 4 } });
    world.limits.set(QUOTA, { value: 20 });
    world.train(nameOf(await world.launch(named('other'))));
    world.pass(1000);
  });

  test('holds for an elastic run that has found no instances for its smallest size', async () => {
    const runId = await world.launch(RUN_FILE.replace('instanceCount: 2', 'instanceCount: { min: 1, max: 4 }'));
    for (const [attempt, instances] of [2, 1].entries()) {
      expect(instancesOf(nameOf(runId, attempt + 1))).toBe(instances);
      world.pass(120 * MINUTE);
      world.end(nameOf(runId, attempt + 1), 'Stopped', '', 'MaxPendingTimeExceeded');
      for (let i = 0; i < 4; i++) await world.tick();
    }
    const live = [...world.sagemaker.jobs].filter(([, { status }]) => status === 'InProgress');
    const held = live.reduce((sum, [name]) => sum + instancesOf(name), 0);
    expect(held).toBeLessThanOrEqual(4);
  });

  test('holds for the largest of the alternatives, any of which the service may choose', async () => {
    const larger = '2, alternatives: [{ instanceType: ml.m5.2xlarge, instanceCount: 4 }]';
    const runId = await start(RUN_FILE.replace('instanceCount: 2', `instanceCount: ${larger}`));
    await world.settle();
    expect(world.sagemaker.jobs.has(nameOf(runId))).toBe(false);
  });
});

test('of runs of one name that wait for the newest of that name, each waits for the one before it', async () => {
  const first = await start(named('nightly'));
  await world.settle();
  world.train(nameOf(first));
  const second = await start(named('nightly', 'after: [latest:nightly]\n'));
  const third = await start(named('nightly', 'after: [latest:nightly]\n'));
  await world.settle();
  world.end(nameOf(first), 'Completed');
  for (let i = 0; i < 3; i++) await world.tick();
  expect([second, third].map((runId) => world.sagemaker.jobs.has(nameOf(runId)))).toEqual([true, false]);
});

test('a run that a quota refused and that never trained is held like a new one once the budget is spent', async () => {
  const first = await world.launch(named('first'));
  world.train(nameOf(first));
  world.pass(300 * MINUTE);
  await world.tick();
  world.sagemaker.failCreate({ error: serviceError('ResourceLimitExceeded', 'quota', 400) });
  const runId = await world.launch(named('second'));
  world.describe({ budget: { usdPerMonth: 1 } });
  world.pass(2 * MINUTE);
  for (let i = 0; i < 6; i++) await world.tick();
  expect(world.sagemaker.jobs.has(nameOf(runId))).toBe(false);
  expect((await world.store.find(runId))?.reason).toContain('has spent its budget');
});

test('a run that starts is written before the reasons of those that wait', async () => {
  world.limits.set(QUOTA, { value: 2 });
  for (let i = 0; i < 5; i++) await start(named(`waits${i}`));
  const urgent = await start(named('urgent', 'priority: 5\n'));
  const written: string[] = [];
  const save = world.store.save.bind(world.store);
  world.store.save = (record, ...rest) => {
    written.push(record.runId);
    return save(record, ...rest);
  };
  await world.settle();
  expect(written[0]).toBe(urgent);
});

// The example of docs/queue.md: many hours on CPU instances of a large quota, and fewer on a scarce one.
test('the position that people see is the place at which the queue starts a run', async () => {
  const large = 'ml.m5.large for training job usage';
  for (const [name, value] of Object.entries({ [QUOTA]: 2, [large]: 200 })) world.limits.set(name, { value });
  const hours = { speech: { [large]: 1000, [QUOTA]: 20 }, nlp: { [QUOTA]: 100 } };
  await world.store.saveQueue({ usage: { at: world.now(), hours, held: {} }, shares: {} });
  const busy = await start(named('busy'));
  await world.settle();
  const [a, b] = [await start(named('a')), await start(named('b'), 'speech')];
  await world.settle();
  const positions = await queuePositions(world.reconcile, await world.store.active(), world.now());
  expect([positions.get(a), positions.get(b)]).toEqual([2, 1]);
  world.train(nameOf(busy));
  world.end(nameOf(busy), 'Completed');
  await world.tick();
  expect([a, b].map((runId) => world.sagemaker.jobs.has(nameOf(runId)))).toEqual([false, true]);
});
