// What an environment needs of a VPC that is there already.
import { describe, expect, test } from 'vitest';
import { existingNetworkOf } from '../../../lib/core/config/environment/network';
import { type EnvironmentSpec, resolveEnvironments } from '../../../lib/core/config/environment-file';
import { loadEnvironment } from '../../../lib/core/config/load';

const EXISTING = { vpcId: 'vpc-01234567', subnetIds: ['subnet-01234567'], securityGroupIds: ['sg-01234567'] };
const NETWORK = { mode: 'existing', existing: EXISTING };
const SERVER = 'arn:aws:sagemaker:us-west-2:111122223333:mlflow-tracking-server/a';

function networkOf(options: object) {
  const file = { name: 'research', regions: { 'us-west-2': {} }, network: NETWORK, ...options };
  const { value, issues } = loadEnvironment(JSON.stringify(file));
  if (!value) throw new Error(JSON.stringify(issues));
  return existingNetworkOf(resolveEnvironments(value)[0] as EnvironmentSpec, '444455556666');
}

const NEEDS_NOTHING = {
  region: 'us-west-2',
  account: '444455556666',
  ...EXISTING,
  usesEfa: false,
  addresses: 0,
  services: [],
};

test.each([
  ['names none', { mode: 'none' }],
  ['makes its own', { mode: 'vpc-locked', existing: EXISTING }],
  ['does not say which', { mode: 'existing' }],
])('an environment that %s needs nothing', (_, network) => {
  expect(networkOf({ network })).toBeUndefined();
});

test('an environment without quotas, guardrails and teams needs the VPC alone', () => {
  expect(networkOf({})).toEqual(NEEDS_NOTHING);
});

describe('quotas ask for the addresses of the largest job', () => {
  const P5 = { instanceType: 'ml.p5.48xlarge', count: 4 };
  const M5 = { instanceType: 'ml.m5.xlarge', count: 16 };

  test.each<[object[], object, { usesEfa: boolean; addresses: number }]>([
    [[P5], {}, { usesEfa: true, addresses: 20 }],
    [[M5], {}, { usesEfa: false, addresses: 32 }],
    [[P5, M5], {}, { usesEfa: true, addresses: 32 }],
    [[M5, P5], { maxInstancesPerRun: 8 }, { usesEfa: true, addresses: 20 }],
    [[P5], { maxInstancesPerRun: 3 }, { usesEfa: true, addresses: 15 }],
    [[P5], { maxInstancesPerRun: 4 }, { usesEfa: true, addresses: 20 }],
    [[P5], { maxInstancesPerRun: 5 }, { usesEfa: true, addresses: 20 }],
    [[{ instanceType: 'ml.none', count: 3 }], {}, { usesEfa: false, addresses: 6 }],
  ])('%j under %j', (require, guardrails, expected) => {
    expect(networkOf({ quotas: { require }, guardrails })).toEqual({ ...NEEDS_NOTHING, ...expected });
  });
});

test.each<[object, [service: string, option: string][]]>([
  [{ network: { ...NETWORK, packages: 'wheels', wheels: 's3://bucket/w/' } }, []],
  [
    { network: { ...NETWORK, packages: 'codeartifact' } },
    [
      ['codeartifact.api', 'network.packages'],
      ['codeartifact.repositories', 'network.packages'],
    ],
  ],
  [{ guardrails: { allowRemoteDebug: false } }, []],
  [{ guardrails: { allowRemoteDebug: true } }, [['ssmmessages', 'guardrails.allowRemoteDebug']]],
  [{ teams: { nlp: {}, vision: { mlflow: [] } } }, []],
  [{ teams: { nlp: { mlflow: [SERVER.replace('tracking-server', 'app')] } } }, []],
  [{ teams: { nlp: {}, vision: { mlflow: [SERVER] } } }, [['experiments', 'teams.<team>.mlflow']]],
])('%j needs the services %j', (options, services) => {
  expect(networkOf(options)?.services.map(({ service, option }) => [service, option])).toEqual(services);
});
