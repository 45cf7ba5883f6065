// Small decisions of the module on both sides: what starts a program, what the embedded AWS lacks, and how many addresses instances take.
import { expect, test } from 'vitest';
import { addressesOf } from '../../../lib/core/config/environment/network';
import { startsByDriver } from '../../../lib/core/config/resolve-run';
import { needsAccelerator } from '../../../lib/core/config/smoke';
import { BASE, runOf } from '../../support/runs';

test.each([
  ['fsdp', 'ml.p4d.24xlarge', false],
  ['ddp', 'ml.p4d.24xlarge', false],
  ['custom', 'ml.p4d.24xlarge', false],
  ['deepspeed', 'ml.p4d.24xlarge', true],
  ['megatron', 'ml.p4d.24xlarge', true],
  ['deepspeed', 'ml.m5.xlarge', false],
  ['deepspeed', 'ml.unknown', false],
])('%s on %s needs accelerators that the embedded AWS lacks: %s', (library, instanceType, needs) => {
  const compute = { instanceType, instanceCount: 2 };
  expect(needsAccelerator(runOf({ ...BASE, compute, distribution: { library } }))).toBe(needs);
});

test.each([
  [{}, true],
  [{ distribution: { library: 'ddp', contract: 'toolkit' } }, false],
  [{ code: { source: 'image' } }, false],
  [{ kind: 'processing', output: { s3: 's3://{dataBucket}/x/' } }, true],
  [{ kind: 'processing', image: { kind: 'huggingface', version: '4.49.0' } }, true],
])('the driver starts the program of %j: %s', (fields, does) => {
  expect(startsByDriver(runOf({ ...BASE, ...fields }))).toBe(does);
});

test.each([
  ['ml.p5.48xlarge', 3, 15],
  ['ml.m5.xlarge', 3, 6],
  ['ml.unknown', 1, 2],
])('%s: %i instances take %i addresses', (type, instances, addresses) => {
  expect(addressesOf(type, instances)).toBe(addresses);
});
