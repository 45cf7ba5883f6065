import { expect, test } from 'vitest';
import { BASE, issuesOf } from '../../support/runs';

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

test.each([
  ['ml.p4d.24xlarge', guide, 'network/guide-2023'],
  ['ml.p4d.24xlarge', rdma, 'network/device-rdma'],
  ['ml.p5.48xlarge', { environmentVariables: { NCCL_NET: 'Libfabric' } }, 'network/'],
])('%s with %j is fine', (type, rest, rule) => {
  expect(issuesOf(on(type, rest), rule)).toEqual([]);
});
