import { expect, test } from 'vitest';
import { VirtualClock } from '../../tools/simulation/core/clock';
import { Fleet } from '../../tools/simulation/job/fleet';
import { shapeCount } from '../../tools/simulation/job/job';
import { newJob } from '../../tools/simulation/job/new-job';
import { Capacity } from '../../tools/simulation/services/capacity';
import { shapesInUse } from '../../tools/simulation/services/usage';

const TYPE = 'ml.p5.48xlarge';
const MAX = 4;

/** A fleet of four instances, and what is in use whenever somebody is told of capacity. */
function fleetOfFour() {
  const clock = new VirtualClock();
  const inUseAtChange: number[] = [];
  const fleet: Fleet = new Fleet(clock, new Capacity([{ instanceType: TYPE, instances: MAX }]), {
    onChange: () => undefined,
    onCapacity: () => {
      const jobs = fleet.live().map((job) => shapeCount(shapesInUse(job)));
      const pools = fleet.pools.waiting().map(({ pool }) => shapeCount(pool.shapes));
      inUseAtChange.push([...jobs, ...pools].reduce((sum, count) => sum + count, 0));
    },
    billedShare: () => 1,
    warmPoolLimit: () => MAX,
    onResume: () => undefined,
  });
  const add = (name: string, keepAliveSeconds?: number) => {
    const resources = { InstanceType: TYPE, InstanceCount: MAX, VolumeSizeInGB: 30 } as const;
    const request = { ResourceConfig: { ...resources, KeepAlivePeriodInSeconds: keepAliveSeconds } };
    const job = newJob(name, 'training', request, clock.now);
    fleet.add(job);
    return job;
  };
  return { clock, fleet, add, inUseAtChange };
}

test('the instances of a warm pool go to the job that takes it over, and not to one that waits for capacity as well', () => {
  const { fleet, add } = fleetOfFour();
  const first = add('first', 3600);
  fleet.end(first, 'Completed', 'Completed');
  const cold = add('cold');
  const warm = add('warm', 3600);
  expect(first.pool?.reusedBy).toBe('warm');
  expect([cold.secondaryStatus, warm.secondaryStatus]).toEqual(['Pending', 'Downloading']);
});

test('a warm pool that nobody takes over gives its instances to the job that waits', async () => {
  const { clock, fleet, add } = fleetOfFour();
  fleet.end(add('first', 3600), 'Completed', 'Completed');
  const cold = add('cold');
  await clock.runUntil(3_599_999);
  expect(cold.secondaryStatus).toBe('Pending');
  await clock.runUntil(3_600_000);
  expect(cold.startedAt).toBe(3_600_000);
});

test('nobody is told of room while a job that ends counts beside the warm pool that it leaves', () => {
  const { fleet, add, inUseAtChange } = fleetOfFour();
  fleet.end(add('first', 3600), 'Completed', 'Completed');
  expect(inUseAtChange).toEqual([MAX]);
});
