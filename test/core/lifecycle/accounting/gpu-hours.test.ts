import { expect, test } from 'vitest';
import { gpuHours } from '../../../../lib/core/lifecycle/accounting/spend';
import type { CapacityOption } from '../../../../lib/core/lifecycle/record';
import { attempt, HOUR, MINUTE, policy, running, T0 } from '../support/records';

const record = (instances: CapacityOption['instances']) =>
  running({
    policy: policy({ capacityOptions: [{ id: 'as-written', instances, usage: 'training', usdPerHour: null }] }),
  });
const P5 = { instanceType: 'ml.p5.48xlarge', instanceCount: 2 };
const CPU = { instanceType: 'ml.m5.large', instanceCount: 3 };
const begun = (more: object = {}) => attempt({ capacityOptionId: 'as-written', trainingStartedAt: T0, ...more });

test('GPUs of all instances by the time that they were held', () => {
  expect(gpuHours(record([P5]), begun(), T0 + 30 * MINUTE)).toBe(8);
  expect(gpuHours(record([P5, CPU]), begun(), T0 + HOUR)).toBe(16);
  expect(gpuHours(record([CPU]), begun(), T0 + HOUR)).toBe(0);
});

test('without the time in which an interruption had taken the instances, or before there were any', () => {
  expect(gpuHours(record([P5]), begun({ pauses: { ms: 30 * MINUTE } }), T0 + HOUR)).toBe(8);
  expect(gpuHours(record([P5]), begun({ trainingStartedAt: undefined }), T0 + HOUR)).toBe(0);
});

test('of the alternative that the service chose', () => {
  const selected = { instanceType: 'ml.g5.xlarge', instanceCount: 4 };
  expect(gpuHours(record([P5]), begun({ selected }), T0 + HOUR)).toBe(4);
});

test('chips of Trainium are no GPUs; a type that the catalog does not know is not known', () => {
  expect(gpuHours(record([{ instanceType: 'ml.trn1.32xlarge', instanceCount: 1 }]), begun(), T0 + HOUR)).toBe(0);
  expect(gpuHours(record([{ instanceType: 'ml.new.1xlarge', instanceCount: 1 }]), begun(), T0 + HOUR)).toBeUndefined();
});
