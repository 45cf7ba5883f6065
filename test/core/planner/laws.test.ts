import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type LayoutInput, layoutProblem, type Recompute } from '../../../lib/core/planner/layout';
import { leastGiB } from '../../../lib/core/planner/memory/memory';
import { draws } from '../../support/draws';
import { acceleratorNamed, layout, layouts, planOf } from '../../support/layouts';

/** fast-check prints seed and path of a failure; the runs are enough to meet every library many times. */
const RUNS = { numRuns: draws(200) };
const SLACK = 1 + 1e-9;

/** Holds a law between a layout and a changed one; changes that cannot run say nothing. */
function law(
  name: string,
  change: (l: LayoutInput) => LayoutInput | undefined,
  holds: (l: LayoutInput, other: LayoutInput) => void,
) {
  test(name, () => {
    let met = 0;
    fc.assert(
      fc.property(layouts, (l) => {
        const other = change(l);
        if (!other || layoutProblem(l) !== undefined || layoutProblem(other) !== undefined) return;
        met += 1;
        holds(l, other);
      }),
      RUNS,
    );
    expect(met).toBeGreaterThan(RUNS.numRuns / 20);
  });
}

const memory = (l: LayoutInput) => planOf(l).memoryGiB.total;
const seconds = (l: LayoutInput) => planOf(l).step.total;

law(
  'more shards on as many more nodes never need more memory',
  (l) =>
    l.zeroStage > 0 ? { ...l, nodes: 2 * l.nodes, shard: 2 * l.shard, globalBatch: 2 * l.globalBatch } : undefined,
  (l, more) => expect(memory(more)).toBeLessThanOrEqual(memory(l) * SLACK),
);

law(
  'turning replicas into shards never needs more memory',
  (l) =>
    l.zeroStage > 0 && l.replicate % 2 === 0 ? { ...l, shard: 2 * l.shard, replicate: l.replicate / 2 } : undefined,
  (l, more) => expect(memory(more)).toBeLessThanOrEqual(memory(l) * SLACK),
);

law(
  'sharding one more kind of state never needs more memory',
  (l) =>
    l.zeroStage > 0 && l.zeroStage < 3 && !l.keepsGathered && !l.noSync
      ? { ...l, zeroStage: (l.zeroStage + 1) as LayoutInput['zeroStage'] }
      : undefined,
  (l, more) => expect(memory(more)).toBeLessThanOrEqual(memory(l) * SLACK),
);

law(
  'keeping parameters gathered never needs less memory, nor a longer step',
  (l) => ({ ...l, stack: 'fsdp', zeroStage: 3, keepsGathered: true }),
  (_, kept) => {
    const resharded = { ...kept, keepsGathered: false };
    expect(memory(kept)).toBeGreaterThanOrEqual(memory(resharded) / SLACK);
    expect(seconds(kept)).toBeLessThanOrEqual(seconds(resharded) * SLACK);
  },
);

law(
  'tensor parallelism on as many more nodes never needs more memory',
  (l) => ({ ...l, nodes: 2 * l.nodes, tensor: 2 * l.tensor }),
  (l, more) => expect(memory(more)).toBeLessThanOrEqual(memory(l) * SLACK),
);

law(
  'a larger micro-batch never needs less memory',
  (l) => ({ ...l, microBatch: 2 * l.microBatch }),
  (l, larger) => expect(memory(larger)).toBeGreaterThanOrEqual(memory(l) / SLACK),
);

law(
  'what just fails to fit fits no better with a larger micro-batch',
  (l) => ({ ...l, microBatch: 2 * l.microBatch }),
  (l, larger) => {
    const { memoryGiB, availableGiB } = planOf({ ...l, accelerator: { ...l.accelerator, memoryGiB: 1e6 } });
    const accelerator = { ...l.accelerator, memoryGiB: 0.999 * leastGiB(memoryGiB) + 1e6 - availableGiB };
    expect(planOf({ ...l, accelerator }).fits).toBe('oom');
    expect(planOf({ ...larger, accelerator }).fits).toBe('oom');
  },
);

law(
  'a longer sequence never takes a shorter step, nor less memory',
  (l) => ({ ...l, sequence: 2 * l.sequence }),
  (l, longer) => {
    expect(seconds(longer)).toBeGreaterThanOrEqual(seconds(l) / SLACK);
    expect(memory(longer)).toBeGreaterThanOrEqual(memory(l) / SLACK);
  },
);

law(
  'twice the nodes at the same batch never take a longer step',
  (l) => ({
    ...l,
    nodes: 2 * l.nodes,
    ...(l.zeroStage === 0 ? { replicate: 2 * l.replicate } : { shard: 2 * l.shard }),
  }),
  (l, more) => expect(seconds(more)).toBeLessThanOrEqual(seconds(l) * SLACK),
);

law(
  'a faster network never takes a longer step',
  (l) => ({ ...l, networkGbps: 2 * l.networkGbps }),
  (l, faster) => expect(seconds(faster)).toBeLessThanOrEqual(seconds(l) * SLACK),
);

const GENERATIONS = ['A100-40GB', 'A100-80GB', 'H100-80GB', 'H200-141GB', 'B200-180GB', 'B300-288GB'];

test.each(GENERATIONS.slice(1).map((name, i) => [GENERATIONS[i] ?? '', name]))(
  'a run on %s is never faster than on %s',
  (older, newer) => {
    fc.assert(
      fc.property(layouts, (l) => {
        if (layoutProblem(l) !== undefined) return;
        const before = planOf({ ...l, accelerator: acceleratorNamed(older) });
        const after = planOf({ ...l, accelerator: acceleratorNamed(newer) });
        expect(after.tokensPerSecondPerGpu).toBeGreaterThanOrEqual(before.tokensPerSecondPerGpu / SLACK);
      }),
      RUNS,
    );
  },
);

const MILDER: readonly (readonly [Recompute, Recompute])[] = [
  ['none', 'core'],
  ['none', 'op'],
  ['none', 'block'],
  ['core', 'full'],
  ['op', 'full'],
  ['none', 'products'],
  ['products', 'full'],
  ['block', 'full'],
];

test.each(MILDER)('recompute %s needs no less memory and no more time than %s', (mild, strong) => {
  fc.assert(
    fc.property(layouts, (l) => {
      if (layoutProblem(l) !== undefined) return;
      const a = planOf({ ...l, recompute: mild });
      const b = planOf({ ...l, recompute: strong });
      expect(b.memoryGiB.total).toBeLessThanOrEqual(a.memoryGiB.total * SLACK);
      expect(b.step.total).toBeGreaterThanOrEqual(a.step.total / SLACK);
    }),
    RUNS,
  );
});

test('the parts of a step and of the memory add up to their totals', () => {
  fc.assert(
    fc.property(layouts, (l) => {
      if (layoutProblem(l) !== undefined) return;
      const { step, memoryGiB } = planOf(l);
      const sum = (parts: object, total: number) =>
        Object.values(parts).reduce((a: number, b: number) => a + b, 0) - total;
      expect(sum(step, step.total)).toBeCloseTo(step.total, 6);
      expect(sum(memoryGiB, memoryGiB.total)).toBeCloseTo(memoryGiB.total, 6);
    }),
    RUNS,
  );
});

test('tokens per second, step time and utilisation are one and the same figure', () => {
  fc.assert(
    fc.property(layouts, (l) => {
      if (layoutProblem(l) !== undefined) return;
      const plan = planOf(l);
      const tokens = (l.globalBatch * l.sequence) / plan.step.total / (l.nodes * l.gpusPerNode);
      expect(plan.tokensPerSecondPerGpu / tokens).toBeCloseTo(1, 9);
      expect((plan.mfu * (l.accelerator.bf16DenseTflops ?? 0)) / plan.modelTflopsPerGpu).toBeCloseTo(1, 9);
      expect(plan.hardwareTflopsPerGpu).toBeGreaterThanOrEqual(plan.modelTflopsPerGpu);
      const [low, high] = plan.interval80;
      expect(low < plan.tokensPerSecondPerGpu && plan.tokensPerSecondPerGpu < high).toBe(true);
    }),
    RUNS,
  );
});

test('one GPU communicates with nobody', () => {
  const { step } = planOf(layout({ nodes: 1, gpusPerNode: 1, shard: 1, zeroStage: 0, globalBatch: 4 }));
  const { tensorParallel, contextParallel, pipelineParallel, expertParallel, dataParallel, bubble } = step;
  expect({ tensorParallel, contextParallel, pipelineParallel, expertParallel, dataParallel, bubble }).toEqual({
    tensorParallel: 0,
    contextParallel: 0,
    pipelineParallel: 0,
    expertParallel: 0,
    dataParallel: 0,
    bubble: 0,
  });
});

const alone = (l: LayoutInput) => l.tensor * l.pipeline * l.context === 1;

law(
  'a reference never needs less memory nor a shorter step, and one without a copy no more than one with it',
  (l) => (alone(l) ? { ...l, preferences: 'copy' } : undefined),
  (l, copy) => {
    const shared = { ...l, preferences: 'adapters' as const };
    const pairs = { ...l, microBatch: 2 * l.microBatch, globalBatch: 2 * l.globalBatch };
    expect(seconds(shared)).toBeGreaterThanOrEqual(seconds(pairs) / SLACK);
    expect(memory(shared)).toBeGreaterThanOrEqual(memory(pairs) / SLACK);
    expect(memory(copy)).toBeGreaterThanOrEqual(memory(shared) / SLACK);
    expect(seconds(copy)).toBeGreaterThanOrEqual(seconds(shared) / SLACK);
    // Without a copy, the reference's parameters stay gathered for the model.
    if (!l.keepsGathered) expect(seconds(copy)).toBeCloseTo(seconds(shared), 9);
  },
);

law(
  'frozen weights never need more memory than the adapters themselves, nor a longer step',
  (l) => (alone(l) ? { ...l, adapters: 1e6 } : undefined),
  (l, frozen) => {
    // In fp32, and in 16 bit for the two blocks that are gathered.
    const own = (8 * 1e6) / 2 ** 30;
    expect(memory(frozen)).toBeLessThanOrEqual((memory(l) + own) * SLACK);
    expect(seconds(frozen)).toBeLessThanOrEqual(seconds(l) * SLACK);
  },
);
