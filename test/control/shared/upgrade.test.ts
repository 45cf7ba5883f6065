import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import { expect, test } from 'vitest';
import written from '../../fixtures/run-table-0.2.0.json';
import { fakeWorld, MINUTE, RUN_FILE } from '../support/fake-world';

const RUN = 'pretrain-261121120000';
const nameOf = (attempt: number) => `research-${RUN}-a00${attempt}`;
const documentOf = (item: Record<string, AttributeValue> | undefined) => JSON.parse(item?.document?.S ?? 'null');

/** A control plane of today that takes over the table and the live job of 0.2.0. */
function upgraded() {
  const world = fakeWorld();
  for (const [id, item] of Object.entries(written.items)) {
    world.table.items.set(id, structuredClone(item) as unknown as Record<string, AttributeValue>);
  }
  world.pass(10 * MINUTE);
  const { jobCreatedAt, trainingStartedAt } = documentOf(world.table.items.get(`${RUN}|RUN`)).attempt;
  world.sagemaker.jobs.set(nameOf(2), {
    request: structuredClone(written.request) as never,
    status: 'InProgress',
    secondaryStatus: 'Training',
    createdAt: jobCreatedAt,
    trainingStartedAt,
  });
  world.commit(RUN, 10);
  return world;
}

/** Paths of a document and the types of what stands there; lists count as one value. */
function shapeOf(value: unknown, path = ''): [string, string][] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return [[path, Array.isArray(value) ? 'list' : typeof value]];
  }
  return Object.entries(value).flatMap(([key, inner]) => shapeOf(inner, `${path}.${key}`));
}

test('a live run of 0.2.0 goes on: its job is watched, and the next attempt asks for the same', async () => {
  const world = upgraded();
  await world.tick();
  expect(await world.store.find(RUN)).toMatchObject({ state: 'running', attempt: { number: 2, phase: 'created' } });
  world.end(nameOf(2), 'Failed', 'InternalServerError: x');
  await world.tick();
  await world.tick(30);
  const { ResourceConfig, EnableManagedSpotTraining } = world.sagemaker.job(nameOf(3)).request;
  expect(ResourceConfig).toEqual(written.request.ResourceConfig);
  expect(EnableManagedSpotTraining).toBe(true);
  expect(world.jobFile(RUN, 3).checkpoints.resumeFrom).toContain('step-10');
});

test('a stop and a resume of it work', async () => {
  const world = upgraded();
  await world.ask({ action: 'stop', runId: RUN });
  await world.settle();
  world.end(nameOf(2), 'Stopped');
  await world.tick();
  expect(await world.store.find(RUN)).toMatchObject({ state: 'stopped' });
  await world.ask({ action: 'resume', runId: RUN });
  await world.settle();
  expect(world.sagemaker.jobs.has(nameOf(3))).toBe(true);
});

test.each(['RUN', 'INTENT', 'ATTEMPT#0002'])(
  '0.2.0 reads the %s item of today: every field that it knows is there, of its type',
  async (item) => {
    const world = upgraded();
    await world.tick();
    const before = shapeOf(documentOf((written.items as unknown as Record<string, never>)[`${RUN}|${item}`]));
    const now = new Map(shapeOf(documentOf(world.table.items.get(`${RUN}|${item}`))));
    const optional = /\.(notBefore|absentSince|suspectedHangAt)$/;
    for (const [path, type] of before) {
      const found = now.get(path);
      if (optional.test(path) && found === undefined) continue;
      // A value that was not known yet may be known now.
      if (type === 'object') continue;
      expect([path, found]).toEqual([path, type]);
    }
  },
);

test('a run of 0.2.0 is never asked to make room, and never grows', async () => {
  const world = upgraded();
  for (let i = 0; i < 20; i++) await world.tick();
  const record = await world.store.find(RUN);
  expect(record).not.toHaveProperty('reservation');
  expect(record?.attempt).not.toHaveProperty('handOver');
});

test('0.2.0 reads a preemptible run of varying size as one of its largest size: nothing that it knows has another type', async () => {
  const world = fakeWorld();
  const file = RUN_FILE.replace('instanceCount: 2', 'instanceCount: { min: 1, max: 4 }');
  const runId = await world.launch(`${file}preemptible: true\n`);
  for (const item of ['RUN', 'INTENT', 'ATTEMPT#0001']) {
    const old = item.startsWith('ATTEMPT') ? 'ATTEMPT#0002' : item;
    const before = new Map(shapeOf(documentOf((written.items as unknown as Record<string, never>)[`${RUN}|${old}`])));
    const now = shapeOf(documentOf(world.table.items.get(`${runId}|${item}`)));
    // The run file as written, which 0.2.0 reads only for what the resolved run lacks.
    const others = now.filter(([at, type]) => !at.startsWith('.spec.written') && (before.get(at) ?? type) !== type);
    expect(others.filter(([at, type]) => type !== 'object' && before.get(at) !== 'object')).toEqual([]);
  }
  const { spec } = documentOf(world.table.items.get(`${runId}|INTENT`));
  expect(spec.compute.instanceCount).toBe(4);
});
