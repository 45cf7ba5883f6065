import { describe, expect, test } from 'vitest';
import { loadEnvironment } from '../../../lib/core/config/load';
import { checkEnvironment, checkPartialEnvironment } from '../../../lib/core/rules/environment';

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
    [
      'error storage.fsxLustre.sizeGiB',
      'error storage.fsxLustre.throughputMBpsPerTiB',
      'error storage.fsxLustre.zoneId',
    ],
  ],
  [{ quotas: { require: [{ instanceType: 'ml.p4d.24xlarg', count: 1 }] } }, ['error quotas.require[0].instanceType']],
  [
    { quotas: { require: [{ instanceType: 'ml.p6-b300.48xlarge', count: 1 }] } },
    ['warning quotas.require[0].instanceType'],
  ],
  [{ guardrails: { allowedImages: ['environment', 'dcl'] } }, ['error guardrails.allowedImages[1]']],
  [{ guardrails: { maxInstancesPerRun: 8, maxConcurrentInstances: 8 } }, []],
  [{ guardrails: { maxInstancesPerRun: 9, maxConcurrentInstances: 8 } }, ['warning guardrails.maxInstancesPerRun']],
])('%j', (file, expected) => {
  expect(pathsOf(file)).toEqual(expected);
});

test('a finding that holds in every region is said once', () => {
  expect(pathsOf({ regions: { 'us-west-2': {}, 'us-east-1': {} }, network: { mode: 'existing' } })).toEqual([
    'error network.existing',
  ]);
});

const EAST_TOO = { 'us-west-2': {}, 'us-east-1': {} };
const EXISTING = {
  vpcId: 'vpc-01234567',
  subnetIds: ['subnet-01234567'],
  securityGroupIds: ['sg-01234567'],
};
const keyIn = (region: string, partition = 'aws') =>
  `arn:${partition}:kms:${region}:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab`;
const teams = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`t${i}`, {}]));

test.each([
  [
    'a mode without its network, in one region',
    { regions: { 'us-west-2': {}, 'us-east-1': { network: { mode: 'existing' } } } },
    ['error regions.us-east-1.network.existing'],
  ],
  ['an account beside accounts', { account: '111122223333', accounts: { dev: '444455556666' } }, ['error accounts']],
  ['two stages in one account', { accounts: { dev: '111122223333', prod: '111122223333' } }, ['error accounts.prod']],
  [
    'a run that every account would train',
    {
      accounts: { dev: '111122223333', prod: '444455556666' },
      runs: [{ file: 'r.yaml', submit: 'on-change' }],
    },
    ['error runs[0].submit'],
  ],
  ['two partitions', { regions: { 'us-west-2': {}, 'cn-north-1': {} } }, ['error regions']],
  [
    'one VPC for two regions',
    { regions: EAST_TOO, network: { mode: 'existing', existing: EXISTING } },
    ['error network.existing.vpcId'],
  ],
  [
    'one file system for two regions',
    { regions: EAST_TOO, storage: { fileSystems: { a: { efs: 'fs-01234567', directoryPath: '/' } } } },
    ['error storage.fileSystems.a'],
  ],
  [
    'zones of another region',
    { network: { availabilityZoneIds: ['usw2-az1', 'use1-az1'] } },
    ['error network.availabilityZoneIds[1]'],
  ],
  [
    'zones without a network to make',
    { network: { mode: 'none', availabilityZoneIds: ['usw2-az1'] } },
    ['error network.availabilityZoneIds'],
  ],
  ['wheels that nothing uses', { network: { wheels: 's3://wheels/' } }, ['error network.wheels']],
  [
    'a repository that nothing uses',
    { network: { codeArtifact: { domain: 'dom', repository: 'repo' } } },
    ['error network.codeArtifact'],
  ],
  [
    'a file system without a VPC',
    { network: { mode: 'none' }, storage: { fileSystems: { a: { efs: 'fs-01234567', directoryPath: '/' } } } },
    ['error storage.fileSystems'],
  ],
  [
    'a name that the made file system has',
    {
      network: { availabilityZoneIds: ['usw2-az1'] },
      storage: {
        fsxLustre: { sizeGiB: 1200, zoneId: 'usw2-az1' },
        fileSystems: { fsx: { efs: 'fs-01234567', directoryPath: '/' } },
      },
    },
    ['error storage.fileSystems.fsx'],
  ],
  [
    'a place named twice',
    { storage: { external: [{ s3: 's3://abc/' }, { s3: 's3://abc/', access: 'read-write' }] } },
    ['error storage.external[1].s3'],
  ],
  [
    'a key of another partition',
    { storage: { external: [{ s3: 's3://abc/', kmsKeyArn: keyIn('cn-north-1', 'aws-cn') }] } },
    ['error storage.external[0].kmsKeyArn'],
  ],
  [
    'a key of another region',
    { storage: { external: [{ s3: 's3://abc/', kmsKeyArn: keyIn('us-east-1') }] } },
    ['warning storage.external[0].kmsKeyArn'],
  ],
  ['a base beside an image', { image: { base: 'pytorch-2.13', uri: 'registry.example.com/a:1' } }, ['error image.uri']],
  ['an image that is no URI', { image: { uri: 'not a uri' } }, ['error image.uri']],
  [
    'an image of another region',
    { image: { uri: '111122223333.dkr.ecr.us-east-1.amazonaws.com/a:1' } },
    ['warning image.uri'],
  ],
  ['a price of no type', { prices: { 'ml.p5.48xlrge': 1 } }, ['error prices["ml.p5.48xlrge"]']],
  [
    'types that none is allowed of',
    { guardrails: { allowedInstanceTypes: ['p5.48xlarge'] } },
    ['error guardrails.allowedInstanceTypes[0]'],
  ],
  [
    'a pattern for types to come',
    { guardrails: { allowedInstanceTypes: ['ml.p5.*', 'ml.p55.*'] } },
    ['warning guardrails.allowedInstanceTypes[1]'],
  ],
  [
    'an image prefix with a wildcard',
    { guardrails: { allowedImages: ['*.dkr.ecr'] } },
    ['error guardrails.allowedImages[0]'],
  ],
  [
    'a limit that another never lets be reached',
    { guardrails: { maxInstancesPerRun: 20, maxConcurrentInstances: 10 } },
    ['warning guardrails.maxInstancesPerRun'],
  ],
  [
    'a quota beyond the guardrails',
    {
      guardrails: { allowedInstanceTypes: ['ml.g5.*'], maxConcurrentInstances: 10 },
      quotas: { require: [{ instanceType: 'ml.p5.48xlarge', count: 64 }] },
    },
    ['warning quotas.require[0].count', 'warning quotas.require[0].instanceType'],
  ],
  [
    'principals of another partition',
    { regions: { 'cn-north-1': {} }, access: { ci: ['arn:aws:iam::111122223333:root'] } },
    ['error access.ci[0]'],
  ],
  ['more teams than a stack holds', { teams: teams(31) }, ['error teams']],
  [
    'thresholds that nobody hears of',
    { budget: { monthlyUsd: 5, thresholdsPercent: [50] } },
    ['warning budget.thresholdsPercent'],
  ],
])('fails: %s', (_, file, expected) => {
  expect(pathsOf(file)).toEqual(expected);
});

test.each([
  [
    'zones of each region below it',
    { regions: { 'us-gov-west-1': { network: { availabilityZoneIds: ['usgw1-az1'] } } } },
  ],
  ['zones in Asia', { regions: { 'ap-northeast-1': { network: { availabilityZoneIds: ['apne1-az4'] } } } }],
  [
    'an image of its own in one region',
    {
      regions: { 'us-west-2': {}, 'us-east-1': { image: { uri: '111122223333.dkr.ecr.us-east-1.amazonaws.com/a:1' } } },
      image: { base: 'smp-2.8.0' },
    },
  ],
  [
    'wheels that one of two regions uses',
    {
      regions: { 'us-west-2': {}, 'us-east-1': { network: { packages: 'none' } } },
      network: { packages: 'wheels', wheels: 's3://wheels/' },
    },
  ],
  ['thirty teams in a network that exists', { teams: teams(30), network: { mode: 'existing', existing: EXISTING } }],
  [
    'a network of its own in each region',
    {
      regions: {
        'us-west-2': { network: { existing: EXISTING } },
        'us-east-1': { network: { existing: { ...EXISTING, vpcId: 'vpc-11234567' } } },
      },
      network: { mode: 'existing' },
    },
  ],
])('takes %s', (_, file) => {
  expect(pathsOf(file)).toEqual([]);
});

describe('a value that the schema refuses', () => {
  const rulesOf = (file: object): string[] => {
    const { partial } = loadEnvironment(JSON.stringify(file));
    return partial ? checkPartialEnvironment(partial).map(({ path }) => path) : ['nothing left'];
  };
  const REGIONS = { 'us-west-2': {} };

  test('hides no finding elsewhere', () => {
    const file = { name: 'Bad', regions: REGIONS, network: { packages: 'wheels' }, prices: { 'ml.no': 1 } };
    expect(rulesOf(file)).toEqual(['network.wheels', 'prices["ml.no"]']);
    const storage = { buckets: { data: 'slipway-one-111122223333-us-west-2-artifacts' } };
    expect(rulesOf({ name: 'one', account: '1111', regions: REGIONS, storage })).toEqual(['storage.buckets.data']);
  });

  test('makes no finding of what stands in for it', () => {
    expect(rulesOf({ name: 'one', regions: REGIONS, network: { mode: 'exsting', existing: EXISTING } })).toEqual([]);
    expect(rulesOf({ name: 'one', regions: REGIONS, network: { packages: 'wheels', whels: 's3://a/' } })).toEqual([]);
  });
});
