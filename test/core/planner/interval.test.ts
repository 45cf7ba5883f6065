import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { LayoutInput } from '../../../lib/core/planner/layout';
import { planRun } from '../../../lib/core/planner/run/plan-run';
import { acceleratorNamed, layout, planOf } from '../../support/layouts';
import { PLANNABLE, runOf } from '../../support/runs';

/** Half the width of the 80 % interval, in ln(tokens per second). */
function halfWidth(changes: Partial<LayoutInput>): number {
  const { interval80, tokensPerSecondPerGpu } = planOf(layout(changes));
  return Math.log(interval80[1] / tokensPerSecondPerGpu);
}

test('the interval of the built-in trainer is wider than that of published software where several nodes train', () => {
  fc.assert(
    fc.property(fc.constantFrom(1, 2, 4, 16, 64), fc.constantFrom('none', 'full'), (nodes, recompute) => {
      const kind = { nodes, shard: 8 * nodes, globalBatch: 64 * nodes, recompute } as const;
      const wider = halfWidth({ ...kind, isOwnTrainer: true }) - halfWidth(kind);
      if (nodes === 1) expect(Math.abs(wider)).toBeLessThan(0.02);
      else expect(wider).toBeGreaterThan(0.08);
    }),
  );
});

test('tensor parallelism over nodes is as uncertain as the bandwidth of their network', () => {
  const of = (tensor: number) => {
    const kind = { nodes: 4, tensor, shard: 32 / tensor, globalBatch: 32 };
    const { step } = planOf(layout(kind));
    return { half: halfWidth(kind), share: step.tensorParallel / step.total };
  };
  const [inside, across] = [of(8), of(16)];
  expect(across.share).toBeGreaterThan(0.1);
  expect(across.half - inside.half).toBeGreaterThan(0.4 * across.share);
});

/** Llama-like 3.57B of nanotron's benchmark over two and four nodes without a compiler, tokens a second and GPU. */
const NANOTRON: Partial<LayoutInput> = {
  ...{ stack: 'nanotron', zeroStage: 0, shard: 1, sequence: 4096, recompute: 'none', gradientBytes: 4 },
  model: {
    ...{ layers: 28, hidden: 3072, heads: 32, kvHeads: 32, headSize: 96, ffn: 8192, mlpMatrices: 3 },
    ...{ vocabulary: 131_072, tiedEmbeddings: true, experts: 1, expertsPerToken: 1 },
  },
};
// https://huggingface.co/spaces/nanotron/ultrascale-playbook, 2025-02; micro-batches from huggingface/nanotron@2411b022.
test.each([
  [2, 16, 40, true, 6159],
  [4, 32, 90, true, 3610],
  [2, 16, 16, false, 6246],
  [4, 32, 20, false, 2146],
])(
  'on %i nodes, %i tensor ranks without a compiler are within the interval',
  (nodes, tensor, batch, sequenceParallel, measured) => {
    const batches = { microBatch: batch, globalBatch: batch };
    const { interval80 } = planOf(layout({ ...NANOTRON, ...batches, nodes, tensor, sequenceParallel }));
    expect(interval80[0]).toBeLessThan(measured);
    expect(interval80[1]).toBeGreaterThan(measured);
  },
);

test('a plan says why its interval is wide', () => {
  const assumed = (changes: object) => {
    const plan = planRun(runOf({ ...PLANNABLE, ...changes }), { region: 'us-west-2' });
    if (Array.isArray(plan)) throw new Error(plan.map(({ message }) => message).join('\n'));
    return plan.assumptions.filter((line) => line.startsWith('the interval is wide')).length;
  };
  const hosts = (instanceCount: number) => ({ compute: { instanceType: 'ml.p5.48xlarge', instanceCount } });
  expect(assumed(hosts(1))).toBe(0);
  expect(assumed(hosts(2))).toBe(1);
  expect(assumed({ ...hosts(1), model: { preset: 'qwen3-30b-a3b' } })).toBe(1);
  const parameters = { tensor_parallel_degree: 16 };
  expect(assumed({ ...hosts(2), distribution: { library: 'fsdp', parameters } })).toBe(2);
});

test('experts of unknown kernels are less certain than those of Megatron-Core', () => {
  const model = { ...layout().model, ffn: 1024, experts: 64, expertsPerToken: 8 };
  const megatron = { stack: 'megatron', kernels: 'fused', zeroStage: 1 } as const;
  for (const accelerator of ['H100-80GB', 'A100-80GB'].map(acceleratorNamed)) {
    expect(halfWidth({ model, accelerator, expert: 8 })).toBeGreaterThan(
      0.3 + halfWidth({ model, accelerator, expert: 8, ...megatron }),
    );
  }
});
