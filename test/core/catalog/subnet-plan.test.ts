import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { DEFAULT_VPC_CIDR, MAX_PLANNED_ZONES, subnetPlan } from '../../../lib/core/catalog/subnet-plan';
import { overlap } from '../../laws/support/changes';

const IDS = Array.from({ length: MAX_PLANNED_ZONES }, (_, i) => `usw2-az${i + 1}`);
const zones = fc.shuffledSubarray(IDS, { minLength: 1 });

test('zones in their natural order get the addresses of their blocks', () => {
  expect(subnetPlan(['us-west-2a', 'us-west-2b', 'us-west-2c']).map(({ number, cidr }) => [number, cidr])).toEqual([
    [1, '10.64.0.0/19'],
    [2, '10.64.32.0/19'],
    [3, '10.64.64.0/19'],
  ]);
});

test('a block of another size is cut into eighths, the last one for the edges', () => {
  expect(subnetPlan(['usw2-az1', 'usw2-az7'], '172.20.8.0/21')).toEqual([
    { zone: 'usw2-az1', number: 1, cidr: '172.20.8.0/24', edgeCidr: '172.20.15.0/28' },
    { zone: 'usw2-az7', number: 7, cidr: '172.20.14.0/24', edgeCidr: '172.20.15.96/28' },
  ]);
});

describe('for any zones', () => {
  test('what a zone gets depends on the zone alone', () => {
    fc.assert(
      fc.property(zones, (named) => {
        const alone = named.map((zone) => subnetPlan([zone])[0]);
        expect(subnetPlan(named)).toEqual([...alone].sort((a, b) => (a?.number ?? 0) - (b?.number ?? 0)));
      }),
      { numRuns: 500 },
    );
  });

  test('no two ranges overlap and all lie in the VPC', () => {
    const ranges = subnetPlan(IDS).flatMap(({ cidr, edgeCidr }) => [cidr, edgeCidr]);
    const clashes = ranges.flatMap((one, i) => ranges.slice(i + 1).filter((other) => overlap(one, other)));
    expect(clashes).toEqual([]);
    for (const range of ranges) expect([range, overlap(range, DEFAULT_VPC_CIDR)]).toEqual([range, true]);
    for (const range of ranges) expect(range).toMatch(/^10\.64\.\d+\.\d+\/(19|28)$/);
  });
});
