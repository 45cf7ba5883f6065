import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import { describe, expect, test } from 'vitest';
import { attemptItemOf, eventItemOf, runItem } from '../../lib/control/shared/items';
import type { TimelineEvent } from '../../lib/core/lifecycle/action';
import { decide } from '../../lib/core/lifecycle/decide';
import type { RunRecord, Vitals } from '../../lib/core/lifecycle/record';
import { serviceError } from '../control/support/fake-sagemaker';
import { fakeWorld, RUN_FILE } from '../control/support/fake-world';
import { admitted, failedJob, HOUR, job, MINUTE, run, running, seeing, T0 } from '../core/lifecycle/support/records';

const DAY = 24 * HOUR;
const CAPACITY = 'CapacityError: Unable to provision requested ML compute capacity';
const VITALS: Vitals = {
  firstStep: 1,
  loss: 2.3,
  lossAlert: null,
  slowHost: null,
  stepsPerHour: 400,
  usualStepsPerHour: 400,
  restarts: 0,
  setAside: [],
  sparesLeft: 2,
};

/** Bytes of an item, about as DynamoDB counts them: names and values. */
const sizeOf = (item: Record<string, AttributeValue>): number =>
  Object.entries(item).reduce((sum, [name, value]) => sum + name.length + String(value.S ?? value.N).length, 0);

/** What a run writes that commits every `every` minutes and is looked at in each tick. */
function life(days: number, every: number) {
  let record: RunRecord = running();
  const saves: { events: readonly TimelineEvent[]; runBytes: number; writeUnits: number }[] = [];
  for (let minute = 5; minute <= days * 1440; minute += 5) {
    const now = T0 + minute * MINUTE;
    const commits = Math.floor(minute / every);
    const steps = [commits, commits - 1, commits - 2].filter((n) => n > 0).map((n) => n * every * 7);
    const phase = minute % every === 0 ? 'save' : '';
    const heartbeat = { attempt: 1, step: minute * 7, phase, writtenAt: now - 30_000, vitals: VITALS };
    const save = decide(record, seeing({ job: job(), heartbeat }, steps), now).find((action) => action.do === 'save');
    if (save?.do !== 'save') continue;
    const { version, attempt } = save.record;
    record = { ...save.record, outbox: [] };
    const [whole, ...others] = [
      runItem(record),
      ...(attempt ? [attemptItemOf(record.runId, attempt)] : []),
      ...save.events.map((event, i) => eventItemOf(record.runId, version, i, event)),
    ].map(sizeOf);
    const runBytes = whole ?? 0;
    // A transaction writes each item twice; the run goes to two indexes, too.
    const units = [runBytes, runBytes, ...others].map((bytes) => 2 * Math.ceil(bytes / 1024));
    saves.push({ events: save.events, runBytes, writeUnits: units.reduce((sum, n) => sum + n, 0) });
  }
  return saves;
}

describe('a run that commits for 28 days', () => {
  test.each([10, 30])('every %d minutes keeps an item of one size, and three lines a commit', (every) => {
    const saves = life(28, every);
    const day = saves.slice(0, 288);
    const largest = (of: typeof saves) => Math.max(...of.map(({ runBytes }) => runBytes));
    expect(largest(saves) - largest(day)).toBeLessThan(10);
    expect(largest(saves)).toBeLessThan(2048);
    const lines = saves.flatMap(({ events }) => events);
    const commits = (28 * 1440) / every;
    expect(lines.filter(({ what }) => what === 'checkpoint-committed')).toHaveLength(commits);
    expect(lines.length).toBeLessThanOrEqual(3 * commits + 1);
    expect(Math.max(...lines.map((line) => JSON.stringify(line).length))).toBeLessThan(400);
    expect(Math.max(...saves.map(({ writeUnits }) => writeUnits))).toBeLessThanOrEqual(16);
  });
});

test('a wait for quota is over with the training after it: no capacity eight days later is a new wait', () => {
  const absent = { kind: 'absent' } as const;
  let record = run(admitted(), seeing({}), T0).record;
  record = run(record, seeing({ job: absent, create: { kind: 'limit', error: 'ResourceLimitExceeded' } }), T0).record;
  expect(record.state).toBe('queued');
  record = { ...record, admitted: true, state: 'submitting', notBefore: undefined };
  record = run(record, seeing({ job: absent }), T0 + HOUR).record;
  record = run(record, seeing({ create: { kind: 'accepted', arn: 'x' } }), T0 + HOUR).record;
  const at = T0 + 8 * DAY;
  record = run(record, seeing({ job: job({ createdAt: T0 + HOUR }) }, [100]), at).record;
  const lost = failedJob(CAPACITY, { createdAt: T0 + HOUR, endedAt: at });
  expect(run(record, seeing({ job: lost }, [100]), at).record).toMatchObject({
    state: 'resuming',
    budgets: { capacitySince: at, capacityTries: 1 },
  });
});

test('spot that is lost where the on-demand quota is 0 asks for spot again for ten days, and tells so', async () => {
  const world = fakeWorld();
  world.limits.set('ml.g5.12xlarge for training job usage', { value: 0 });
  world.limits.set('ml.g5.12xlarge for spot training job usage', { value: 8 });
  const spot = RUN_FILE.replace('instanceCount: 2 }', 'instanceCount: 2, capacity: spot }')
    .replace('ml.m5.xlarge', 'ml.g5.12xlarge')
    .replace('globalBatchSize: 4', 'globalBatchSize: 8');
  const runId = await world.launch(spot);
  world.end(`research-${runId}-a001`, 'Failed', CAPACITY);
  const refusals = Array.from({ length: 10 }, () => ({
    error: serviceError('ResourceLimitExceeded', 'limit is 0', 400),
  }));
  world.sagemaker.failCreate(...refusals);
  for (let tick = 0; tick < 240; tick++) await world.tick(60);
  const record = await world.store.find(runId);
  expect(record).toMatchObject({ state: 'resuming', capacityOptionId: 'as-written' });
  expect(world.sagemaker.job(`research-${runId}-a002`).request.EnableManagedSpotTraining).toBe(true);
  expect(world.sagemaker.calls.create).toBe(12);
  expect(world.published.map((text) => text.split('\n')[0])).toEqual([
    `${runId}: 10 creates gave no job`,
    `${runId}: research-${runId}-a002 has waited more than an hour for capacity`,
  ]);
});
