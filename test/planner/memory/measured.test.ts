import { expect, test } from 'vitest';
import { planRun } from '../../../lib/planner/run/plan-run';
import { BASE, runOf } from '../../support/runs';

/** What PyTorch reserved on an H200 for layers of Llama 3 8B at 8,192 tokens, in GiB (docs/evidence/2026-11-26-h200.md). */
const MEASURED = [
  { layers: 8, activationCheckpointing: 'none', precision: 'bf16', gib: 47.8, within: 8 },
  { layers: 8, activationCheckpointing: 'selective', precision: 'bf16', gib: 45.4, within: 8 },
  { layers: 16, activationCheckpointing: 'none', precision: 'bf16', gib: 82.7, within: 8 },
  // In float8 the compiler saves no more than with checkpointing.
  { layers: 8, activationCheckpointing: 'none', precision: 'fp8', gib: 45.1, within: 13 },
  { layers: 8, activationCheckpointing: 'selective', precision: 'fp8', gib: 45.1, within: 8 },
] as const;

test.each(MEASURED)(
  '$layers layers in $precision with checkpointing $activationCheckpointing: planned within $within % of $gib GiB',
  ({ layers, gib, within, ...training }) => {
    const plan = planRun(
      runOf({
        ...BASE,
        model: {
          architecture: {
            layers,
            hiddenSize: 4096,
            attentionHeads: 32,
            kvHeads: 8,
            ffnHiddenSize: 14336,
            vocabularySize: 128256,
            gatedMlp: true,
            tiedEmbeddings: false,
          },
        },
        training: { sequenceLength: 8192, microBatchSize: 1, globalBatchSize: 1, steps: 30, ...training },
        code: { source: 'builtin' },
        compute: { instanceType: 'ml.p5.4xlarge', instanceCount: 1 },
        distribution: { library: 'fsdp', parameters: { compile: true } },
      }),
      { region: 'us-west-2' },
    );
    if (Array.isArray(plan)) throw new Error(JSON.stringify(plan));
    expect(Math.abs(plan.memoryGiB.total / gib - 1)).toBeLessThan(within / 100);
  },
);
