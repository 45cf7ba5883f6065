import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { DEFAULT_VPC_CIDR, MAX_PLANNED_ZONES, subnetPlan } from '../../../lib/core/catalog/subnet-plan';
import { overlap } from '../../laws/support/changes';

const IDS = Array.from({ length: MAX_PLANNED_ZONES }, (_, i) => `usw2-az${i + 1}`);
const zones = fc.shuffledSubarray(IDS, { minLength: 1 });
const order = fc.shuffledSubarray(IDS, { maxLength: 6 });

test('zones in their natural order get the addresses that version 0.1.0 gave them', () => {
  expect(subnetPlan(['us-west-2a', 'us-west-2b', 'us-west-2c']).map(({ number, cidr }) => [number, cidr])).toEqual([
    [1, '10.64.0.0/19'],
    [2, '10.64.32.0/19'],
    [3, '10.64.64.0/19'],
  ]);
});

test('a given order gives back what version 0.1.0 did with it: subnets by place, edges after them', () => {
  expect(subnetPlan(['usw2-az2', 'usw2-az4'], ['usw2-az4', 'usw2-az2'])).toEqual([
    { zone: 'usw2-az4', number: 1, cidr: '10.64.0.0/19', edgeCidr: '10.64.64.0/28' },
    { zone: 'usw2-az2', number: 2, cidr: '10.64.32.0/19', edgeCidr: '10.64.64.16/28' },
  ]);
});

test('a block of another size is cut into eighths, the last one for the edges', () => {
  expect(subnetPlan(['usw2-az1', 'usw2-az7'], [], '172.20.8.0/21')).toEqual([
    { zone: 'usw2-az1', number: 1, cidr: '172.20.8.0/24', edgeCidr: '172.20.15.0/28' },
    { zone: 'usw2-az7', number: 7, cidr: '172.20.14.0/24', edgeCidr: '172.20.15.96/28' },
  ]);
});

describe('for any zones', () => {
  test('what a zone gets depends on the zone and the given order alone', () => {
    fc.assert(
      fc.property(zones, order, (named, first) => {
        const alone = named.map((zone) => subnetPlan([zone], first)[0]);
        expect(subnetPlan(named, first)).toEqual([...alone].sort((a, b) => (a?.number ?? 0) - (b?.number ?? 0)));
      }),
      { numRuns: 500 },
    );
  });

  test('no two ranges overlap and all lie in the VPC', () => {
    fc.assert(
      fc.property(order, (first) => {
        const ranges = subnetPlan(IDS, first).flatMap(({ cidr, edgeCidr }) => [cidr, edgeCidr]);
        const clashes = ranges.flatMap((one, i) => ranges.slice(i + 1).filter((other) => overlap(one, other)));
        expect(clashes).toEqual([]);
        for (const range of ranges) expect([range, overlap(range, DEFAULT_VPC_CIDR)]).toEqual([range, true]);
        for (const range of ranges) expect(range).toMatch(/^10\.64\.\d+\.\d+\/(19|28)$/);
      }),
      { numRuns: 500 },
    );
  });
});
