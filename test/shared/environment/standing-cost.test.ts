import { describe, expect, test } from 'vitest';
import { standingCost } from '../../../lib/shared/environment/standing-cost';
import { specOf } from '../../cdk/support/app';

const itemsOf = (more: object) =>
  Object.fromEntries(standingCost(specOf(more)).items.map(({ item, count }) => [item, count]));

test('a locked network costs nothing by itself', () => {
  expect(standingCost(specOf()).usdPerMonth).toBeCloseTo(5.6, 2);
});

test('a key of a team costs a dollar a month, an existing one nothing', () => {
  const keys = (kmsKey: string) => itemsOf({ teams: { nlp: { kmsKey } } })['KMS key'] ?? 0;
  const arn = 'arn:aws:kms:us-west-2:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab';
  expect([keys('own') - keys('shared'), keys(arn) - keys('shared')]).toEqual([1, 0]);
});

describe('standing cost', () => {
  test.each([
    [{ network: { endpoints: ['ecr', 'sts'], availabilityZoneIds: ['usw2-az1', 'usw2-az2'] } }, 6],
    [{ network: { endpoints: ['sts'] } }, 4],
    [{ network: { packages: 'codeartifact', codeArtifact: { domain: 'ml', repository: 'pypi' } } }, 8],
    [{ guardrails: { allowRemoteDebug: true } }, 4],
  ])('%j has %i endpoints in zones', (more, count) => {
    expect(itemsOf(more)['interface endpoint in a zone']).toBe(count);
  });

  test('a NAT gateway comes with its public address, and endpoints do not', () => {
    expect(itemsOf({ network: { mode: 'vpc-nat' }, guardrails: { allowRemoteDebug: true } })).toMatchObject({
      'NAT gateway': 1,
      'public IPv4 address': 1,
    });
    expect(itemsOf({ network: { mode: 'vpc-nat' } })).not.toHaveProperty('interface endpoint in a zone');
  });

  test('a file system by size and throughput', () => {
    const fsx = (throughputMBpsPerTiB?: number) =>
      standingCost(
        specOf({
          network: { availabilityZoneIds: ['usw2-az2'] },
          storage: { fsxLustre: { sizeGiB: 1200, zoneId: 'usw2-az2', throughputMBpsPerTiB } },
        }),
      ).items.find(({ item }) => item.includes('Lustre'))?.usdPerMonth;
    expect([fsx(), fsx(125), fsx(1000)]).toEqual([252, 174, 720]);
  });
});

test('a region without listed prices says so, and how many zones were taken', () => {
  const spec = { ...specOf(), region: 'eu-north-1' };
  expect(standingCost(spec).notes).toEqual([
    expect.stringContaining('eu-north-1 may differ'),
    'eu-north-1 is assumed to have 3 zones',
    expect.stringContaining('keeps a copy of it, about 10 GB'),
    expect.stringContaining('billed additionally'),
  ]);
});
