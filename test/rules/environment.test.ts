import { expect, test } from 'vitest';
import { checkEnvironment } from '../../lib/rules/environment';
import { loadEnvironment } from '../../lib/spec/load';

function pathsOf(file: object): string[] {
  const loaded = loadEnvironment(JSON.stringify({ name: 'research', regions: { 'us-west-2': {} }, ...file }));
  if (!loaded.value) throw new Error(JSON.stringify(loaded.issues));
  return checkEnvironment(loaded.value).map((i) => `${i.level} ${i.path}`);
}

test.each([
  [{}, []],
  [{ regions: { 'us-west-9': {} } }, ['error regions.us-west-9']],
  [{ network: { mode: 'existing' } }, ['error network.existing']],
  [{ network: { packages: 'wheels' } }, ['error network.wheels']],
  [
    { storage: { fsxLustre: { sizeGiB: 1300, throughputMBpsPerTiB: 300, zoneId: 'usw2-az2' } } },
    ['error storage.fsxLustre.sizeGiB', 'error storage.fsxLustre.throughputMBpsPerTiB'],
  ],
  [{ quotas: { require: [{ instanceType: 'ml.p4d.24xlarg', count: 1 }] } }, ['error quotas.require[0].instanceType']],
  [
    { quotas: { require: [{ instanceType: 'ml.p6-b300.48xlarge', count: 1 }] } },
    ['warning quotas.require[0].instanceType'],
  ],
  [{ guardrails: { allowedImages: ['environment', 'dcl'] } }, ['error guardrails.allowedImages[1]']],
])('%j', (file, expected) => {
  expect(pathsOf(file)).toEqual(expected);
});

test('a finding that holds in every region is said once', () => {
  expect(pathsOf({ regions: { 'us-west-2': {}, 'us-east-1': {} }, network: { mode: 'existing' } })).toEqual([
    'error network.existing',
  ]);
});
