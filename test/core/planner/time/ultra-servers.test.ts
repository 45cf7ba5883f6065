import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { findInstanceType } from '../../../../lib/core/catalog/instances/instances';
import { domainNodesOf } from '../../../../lib/core/distribution/ultra-servers';
import type { LayoutInput } from '../../../../lib/core/planner/layout';
import { groupOf } from '../../../../lib/core/planner/time/network';
import { searchLayouts, spaceAround } from '../../../../lib/core/search/search-layouts';
import { layout, layouts, planOf } from '../../../support/layouts';
import { issuesOf } from '../../../support/runs';

const TYPE = 'ml.p6e-gb200.36xlarge';
const gb200 = findInstanceType(TYPE)?.accelerator;
if (!gb200) throw new Error(`no ${TYPE}`);

/** Two UltraServers under FSDP with tensor parallelism. */
const onGb200 = (changes: Partial<LayoutInput> = {}) =>
  layout({
    accelerator: gb200,
    nodes: 36,
    gpusPerNode: 4,
    networkGbps: 1600,
    domainNodes: 18,
    tensor: 8,
    shard: 18,
    globalBatch: 144,
    ...changes,
  });
const tensorSeconds = (changes: Partial<LayoutInput>) => planOf(onGb200(changes)).step.tensorParallel;

test.each([
  [18, undefined, 18],
  [17, undefined, 17],
  [5, undefined, 5],
  [36, undefined, 18],
  [34, undefined, 17],
  [32, undefined, 2],
  [18, [9, 9], 9],
  [18, [12, 6], 6],
  [18, [12], 6],
])('of %i instances placed as %j, %i share an UltraServer for certain', (nodes, counts, expected) => {
  const placement = counts && { ultraServers: counts.map((instanceCount) => ({ instanceCount })) };
  expect(domainNodesOf(TYPE, nodes, placement)).toBe(expected);
});

test('other types have no NVLink beyond an instance', () =>
  expect(domainNodesOf('ml.p5.48xlarge', 18, undefined)).toBe(1));

test('72 GPUs of an UltraServer are one group of NVLink, and 144 are two', () => {
  expect(groupOf(72, 1, 72)).toEqual({ size: 72, perNode: 72, nodes: 1 });
  expect(groupOf(144, 1, 72)).toEqual({ size: 144, perNode: 72, nodes: 2 });
});

test('fails to stay together: groups of 8 in the 68 GPUs that a plan with a spare instance leaves', () => {
  expect(groupOf(8, 1, 68)).toEqual({ size: 8, perNode: 4, nodes: 2 });
  expect(tensorSeconds({ nodes: 34, domainNodes: 17, shard: 17, globalBatch: 136 })).toBeGreaterThan(
    1.5 * tensorSeconds({}),
  );
});

describe('tensor parallelism of 8 on instances of 4 GPUs', () => {
  test('goes over NVLink within the UltraServer, several times as fast as over EFA', () => {
    expect(tensorSeconds({ domainNodes: undefined })).toBeGreaterThan(3 * tensorSeconds({}));
  });

  test('is searched, as 16 is, and 3 is not', () => {
    const { tensor } = spaceAround(onGb200());
    expect(tensor).toEqual(expect.arrayContaining([8, 16]));
    expect(tensor).not.toContain(3);
    expect(spaceAround(onGb200({ domainNodes: undefined })).tensor).not.toContain(8);
    const { fastest } = searchLayouts(onGb200(), { tensor: [8], shard: [18] });
    expect(fastest[0]?.layout.domainNodes).toBe(18);
  });
});

test('a wider NVLink domain of GPUs whose NVLink is faster than their network never takes a longer step', () => {
  fc.assert(
    fc.property(layouts, fc.constantFrom(2, 4, 8), (drawn, domainNodes) => {
      const l = { ...drawn, accelerator: gb200, networkGbps: 1600 };
      const apart = planOf({ ...l, domainNodes: undefined }).step.total;
      expect(planOf({ ...l, domainNodes }).step.total).toBeLessThanOrEqual(apart * (1 + 1e-9));
    }),
    { numRuns: 300 },
  );
});

const run = (instanceCount: number, tensor: number, compute: object = {}) =>
  issuesOf(
    {
      name: 'a',
      code: { source: 'src' },
      compute: { instanceType: TYPE, instanceCount, ...compute },
      distribution: { library: 'megatron', parameters: { 'tensor-model-parallel-size': tensor } },
    },
    'compute/ultraserver-groups',
  ).map(({ message }) => message);

describe('rule compute/ultraserver-groups', () => {
  test('says nothing where UltraServers hold whole groups, and where there is one UltraServer', () => {
    expect([
      run(36, 8),
      run(34, 4),
      run(17, 4),
      run(36, 8, { placement: { ultraServers: [{ instanceCount: 18 }] } }),
    ]).toEqual([[], [], [], []]);
  });

  test('fails: groups of 8 on 17 instances of each UltraServer', () => {
    expect(run(34, 8)).toEqual([
      'distribution.parameters: must divide the 68 GPUs that a job has of each UltraServer into whole tensor-parallel groups, got 8; use 1, 2 or 4 as the degree of tensor parallelism, or place a multiple of 2 instances on each UltraServer (compute.placement)',
    ]);
    expect(run(36, 16)).toEqual([expect.stringContaining('place a multiple of 4 instances on each UltraServer')]);
  });
});
