import { describe, expect, test } from 'vitest';
import {
  optionAfterCapacityFailure,
  policyOf,
  runWithCapacityOption,
} from '../../../lib/core/lifecycle/capacity-options';
import type { CapacityOption, RunPolicy } from '../../../lib/core/lifecycle/record';
import { runOf } from '../../support/runs';
import { admitted, policy } from './support/records';

const TYPE = 'ml.p4d.24xlarge';
const own = (more: object = {}) =>
  runOf({ name: 'a', code: { source: './src' }, compute: { instanceType: TYPE, instanceCount: 2 }, ...more });
const builtin = (more: object = {}) => own({ code: { source: 'builtin' }, ...more });
const compute = (more: object) => ({ compute: { instanceType: TYPE, instanceCount: 2, ...more } });
const MARKER = { committedMarker: '.complete' };

test('a run file that says little gives the defaults, and none of the optional parts', () => {
  const { capacityOptions, ...rest } = policyOf(own(), 'us-west-2');
  expect(capacityOptions).toHaveLength(1);
  expect(rest).toEqual({
    maxAttempts: 20,
    maxRuntimeSeconds: 432_000,
    maxCostUsd: null,
    capacityBudgetSeconds: 604_800,
    startupMinutes: 30,
    silenceMinutes: 20,
    seesSteps: false,
    seesCommits: false,
    keepsCheckpoints: false,
    writesHeartbeats: true,
    checkpointIntervalSeconds: 1800,
    keepAliveSeconds: 0,
    spareInstances: 0,
    preemptible: false,
    lossPolicy: 'stop',
  });
});

test.each<[string, object, Partial<RunPolicy>]>([
  ['a commit marker in a direct store', { checkpoints: { mode: 'direct', ...MARKER } }, { seesCommits: true }],
  ['a commit marker in a managed store', { checkpoints: { mode: 'managed', ...MARKER } }, { seesCommits: true }],
  ['a managed store without a marker', { checkpoints: { mode: 'managed' } }, { seesCommits: false }],
  ['a file system', { checkpoints: { mode: 'fsx', ...MARKER } }, { seesCommits: false }],
  ['checkpoints', { checkpoints: { mode: 'managed' } }, { keepsCheckpoints: true }],
  ['no checkpoints', { checkpoints: { mode: 'none' } }, { keepsCheckpoints: false, seesCommits: false }],
  ['an interval', { checkpoints: { mode: 'managed', intervalMinutes: 7 } }, { checkpointIntervalSeconds: 420 }],
  ['an expression for steps', { progress: { stepRegex: 'step (\\d+)' } }, { seesSteps: true }],
  ['a trainer by name, whose lines may never come', { progress: { format: 'lightning' } }, {}],
  ['network isolation', { network: { isolation: true } }, { writesHeartbeats: false }],
  ['a cap', { limits: { maxCostUsd: 5 } }, { maxCostUsd: 5 }],
  ['a pending limit', { limits: { maxPendingSeconds: 7201 } }, { capacityBudgetSeconds: 7201 }],
  ['a warm pool', compute({ keepAliveSeconds: 600 }), { keepAliveSeconds: 600 }],
  ['spare instances', compute({ spareInstances: 1 }), { spareInstances: 1 }],
  ['preemptible', { preemptible: true }, { preemptible: true }],
  ['training.steps', { training: { steps: 70 } }, { totalSteps: 70 }],
])('own code with %s', (_, more, wanted) => {
  expect(policyOf(own(more), 'us-west-2')).toMatchObject(wanted);
});

test('a processing job and a container that is not started by the driver send no heartbeat', () => {
  expect(policyOf(own({ kind: 'processing' }), 'us-west-2').writesHeartbeats).toBe(false);
  expect(policyOf(own({ distribution: { contract: 'toolkit' } }), 'us-west-2').writesHeartbeats).toBe(false);
});

test('the built-in trainer is seen in a store on S3 alone', () => {
  const seen = (mode: string) => policyOf(builtin({ checkpoints: { mode } }), 'us-west-2').seesCommits;
  expect(['direct', 'managed', 'fsx', 'none'].map(seen)).toEqual([true, true, false, false]);
});

test('the loss policy is an argument of the built-in trainer, and nothing in other code', () => {
  const code = (source: string, value: string) => ({ code: { source, arguments: { 'loss-policy': value } } });
  expect(policyOf(own(code('builtin', 'rollback')), 'us-west-2').lossPolicy).toBe('rollback');
  expect(policyOf(own(code('builtin', 'stop')), 'us-west-2')).toHaveProperty('lossPolicy', 'stop');
  expect(policyOf(own(code('./src', 'rollback')), 'us-west-2')).toHaveProperty('lossPolicy', 'stop');
});

describe('an elastic run', () => {
  const elastic = (more: object = {}) => own({ ...compute({ instanceCount: { min: 1, max: 2 } }), ...more });

  test.each([
    [undefined, 7200],
    [3600, 3600],
    [7199, 7199],
    [86_400, 7200],
  ])('with limits.maxPendingSeconds %s waits %i s for one size', (maxPendingSeconds, seconds) => {
    const limits = maxPendingSeconds === undefined ? {} : { limits: { maxPendingSeconds } };
    expect(policyOf(elastic(limits), 'us-west-2').pendingSeconds).toBe(seconds);
    expect(runWithCapacityOption(elastic(limits), 'as-written').limits.maxPendingSeconds).toBe(seconds);
  });

  test('on spot waits by the limit of spot, and by its own on demand', () => {
    const spot = elastic(compute({ instanceCount: { min: 1, max: 2 }, capacity: 'spot' }));
    expect(runWithCapacityOption(spot, 'as-written').limits.maxPendingSeconds).toBeUndefined();
    expect(runWithCapacityOption(spot, 'on-demand@1')).toMatchObject({
      compute: { instanceCount: 1, capacity: 'on-demand' },
      limits: { maxPendingSeconds: 7200, maxWaitSeconds: undefined },
    });
  });
});

describe('after a capacity failure', () => {
  const option = (id: string): CapacityOption => ({ id, instances: [], usage: 'training', usdPerHour: 1 });
  const after = (capacityOptionId: string, unusable: string[] = []) =>
    optionAfterCapacityFailure(
      admitted({ capacityOptionId, policy: policy({ capacityOptions: ['a', 'b', 'c'].map(option) }) }),
      unusable,
    );

  test.each([
    ['a', [], 'b'],
    ['b', [], 'c'],
    ['c', [], 'a'],
    ['a', ['b'], 'c'],
    ['c', ['a'], 'b'],
    ['b', ['a', 'c'], 'b'],
    ['gone', [], 'a'],
  ])('of %s the next usable capacity option follows; unusable: %j', (at, unusable, next) => {
    expect(after(at, unusable)).toBe(next);
  });
});
