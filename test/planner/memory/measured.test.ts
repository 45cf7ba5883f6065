import { expect, test } from 'vitest';
import { planRun } from '../../../lib/planner/run/plan-run';
import { BASE, runOf } from '../../support/runs';

/** What PyTorch reserved on an H200 for layers of Llama 3 8B at 8,192 tokens, in GiB (docs/evidence/2026-11-23-h200.md). */
const MEASURED = [
  { layers: 8, activationCheckpointing: 'none', precision: 'bf16', gib: 60.7 },
  { layers: 8, activationCheckpointing: 'selective', precision: 'bf16', gib: 58.0 },
  { layers: 16, activationCheckpointing: 'none', precision: 'bf16', gib: 95.3 },
  { layers: 16, activationCheckpointing: 'selective', precision: 'bf16', gib: 89.8 },
  { layers: 8, activationCheckpointing: 'none', precision: 'fp8', gib: 58.4 },
] as const;

test.each(MEASURED)(
  '$layers layers in $precision with checkpointing $activationCheckpointing: planned within 10 % of $gib GiB',
  ({ layers, gib, ...training }) => {
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
    expect(Math.abs(plan.memoryGiB.total / gib - 1)).toBeLessThan(0.1);
  },
);
