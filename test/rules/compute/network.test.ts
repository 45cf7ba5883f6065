import { expect, test } from 'vitest';
import { BASE, DESCRIPTOR, issuesOf } from '../../support/runs';

const on = (instanceType: string, rest: object) => ({ ...BASE, compute: { instanceType, instanceCount: 2 }, ...rest });
const guide = { network: { efaVariables: 'guide-2023' } };
const rdma = { environmentVariables: { FI_EFA_USE_DEVICE_RDMA: '1' } };

test.each([
  ['ml.p5.48xlarge', guide, 'network/guide-2023', 'warning'],
  ['ml.g5.48xlarge', guide, 'network/guide-2023', 'error'],
  ['ml.g5.48xlarge', rdma, 'network/device-rdma', 'error'],
  ['ml.p5.48xlarge', { environmentVariables: { NCCL_TOPO_FILE: '/x' } }, 'network/pinned-efa-variables', 'warning'],
])('fails: %s with %j', (type, rest, rule, level) => {
  expect(issuesOf(on(type, rest), rule)).toMatchObject([{ level }]);
});

test('device RDMA is refused with the type that lacks it', () => {
  expect(issuesOf(on('ml.g5.48xlarge', rdma), 'network/device-rdma').map(({ message }) => message)).toEqual([
    'environmentVariables.FI_EFA_USE_DEVICE_RDMA: must not be 1 on ml.g5.48xlarge, whose EFA has no RDMA: the program would abort, got 1; remove it: libfabric decides by itself',
  ]);
});

test.each([
  ['ml.p4d.24xlarge', guide, 'network/guide-2023'],
  ['ml.p4d.24xlarge', rdma, 'network/device-rdma'],
  ['ml.p5.48xlarge', { environmentVariables: { NCCL_NET: 'Libfabric' } }, 'network/'],
])('%s with %j is fine', (type, rest, rule) => {
  expect(issuesOf(on(type, rest), rule)).toEqual([]);
});

const wandb = { observability: { wandb: { project: 'p' } } };
const KEYLESS =
  'observability.wandb: must come with the secret that holds the API key, got no secrets.WANDB_API_KEY; add secrets: { WANDB_API_KEY: <name of the secret> }';
test.each([
  ['without a key', wandb, [KEYLESS]],
  ['with the key of another service', { ...wandb, secrets: { HF_TOKEN: 'slipway/nlp/hf' } }, [KEYLESS]],
  ['with a secret', { ...wandb, secrets: { WANDB_API_KEY: 'slipway/nlp/wandb' } }, []],
  ['with a variable', { ...wandb, environmentVariables: { WANDB_API_KEY: 'x' } }, []],
  ['offline', { ...wandb, environmentVariables: { WANDB_MODE: 'offline' } }, []],
  [
    'in a script that fetches its own key',
    { ...wandb, image: { kind: 'dlc', version: '2.8' }, distribution: { library: 'ddp', contract: 'toolkit' } },
    [],
  ],
])('Weights & Biases %s', (_what, rest, said) => {
  expect(issuesOf({ ...BASE, ...rest }, 'observability/wandb').map(({ message }) => message)).toEqual(said);
});

test('Weights & Biases needs a server that a locked network reaches', () => {
  const descriptor = { ...DESCRIPTOR, network: { mode: 'vpc-locked' as const } };
  const file = { ...BASE, ...wandb, secrets: { WANDB_API_KEY: 'slipway/nlp/wandb' } };
  expect(issuesOf(file, 'observability/wandb', { descriptor })).toMatchObject([
    { path: 'observability.wandb.baseUrl' },
  ]);
  const own = { ...file, observability: { wandb: { project: 'p', baseUrl: 'https://wandb.internal' } } };
  expect(issuesOf(own, 'observability/wandb', { descriptor })).toEqual([]);
});

test('isolated containers reach no server and nobody reaches them', () => {
  const file = { ...BASE, ...wandb, network: { isolation: true } };
  const observability = { ...wandb.observability, remoteDebug: true };
  expect(issuesOf({ ...file, observability }, 'network/isolated-tools').map(({ message }) => message)).toEqual([
    'observability.wandb: must be absent with network.isolation, got p; remove one of the two',
    'observability.remoteDebug: must be false with network.isolation, got true; remove one of the two',
  ]);
});
