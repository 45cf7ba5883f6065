import { expect, test } from 'vitest';
import { loadRun } from '../../../lib/core/config/load';
import { listCapacityOptions, policyOf, runWithCapacityOption } from '../../../lib/core/lifecycle/capacity-options';

function spec(text: string) {
  const { value, issues } = loadRun(text);
  if (!value) throw new Error(JSON.stringify(issues));
  return value;
}
const spot = spec(`name: a
code: { source: builtin }
compute: { instanceType: ml.p4d.24xlarge, instanceCount: 2, capacity: spot }
`);

test('spot has on-demand behind it; on-demand has nothing', () => {
  expect(listCapacityOptions(spot, 'us-west-2').map((r) => [r.id, r.usage])).toEqual([
    ['as-written', 'spot'],
    ['on-demand', 'training'],
  ]);
  expect(listCapacityOptions(runWithCapacityOption(spot, 'on-demand'), 'us-west-2').map((r) => r.id)).toEqual([
    'as-written',
  ]);
});

test('the on-demand capacity option is an ordinary on-demand run', () => {
  const option = runWithCapacityOption(spot, 'on-demand');
  expect(option.compute.capacity).toBe('on-demand');
  expect(option.limits.maxWaitSeconds).toBeUndefined();
  expect(runWithCapacityOption(spot, 'as-written')).toBe(spot);
});

test('prices are those of the whole cluster, and unknown when one type has none', () => {
  expect(listCapacityOptions(spot, 'us-west-2', { 'ml.p4d.24xlarge': 20 })[0]?.usdPerHour).toBe(40);
  const own = spec('name: a\ncode: { source: ./src }\ncompute: { instanceType: ml.unheardof.large }\n');
  expect(listCapacityOptions(own, 'us-west-2')[0]?.usdPerHour).toBeNull();
});

test('own code without a marker or step regex is not seen to move', () => {
  const own = spec('name: a\ncode: { source: ./src }\ncompute: { instanceType: ml.m5.xlarge }\n');
  expect(policyOf(own, 'us-west-2')).toMatchObject({ seesSteps: false, seesCommits: false });
  expect(policyOf(spot, 'us-west-2')).toMatchObject({ seesSteps: true, seesCommits: true });
});

test('only spot has a lower price to expect, which is that of the service where somebody has seen it', () => {
  const seen = spec(
    'name: a\ncode: { source: ./src }\ncompute: { instanceType: ml.p5.48xlarge, instanceCount: 2, capacity: spot }\n',
  );
  const [asSpot, onDemand] = listCapacityOptions(seen, 'us-west-2');
  expect(asSpot?.expectedUsdPerHour).toBeGreaterThan(0);
  expect(asSpot?.expectedUsdPerHour).toBeLessThan(asSpot?.usdPerHour ?? 0);
  expect(onDemand).not.toHaveProperty('expectedUsdPerHour');
});
