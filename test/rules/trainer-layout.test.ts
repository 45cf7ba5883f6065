import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { findStrategy } from '../../lib/distribution';
import { fsdpCompiles } from '../../lib/distribution/fsdp';
import { checkRun } from '../../lib/rules';
import { loadRun } from '../../lib/spec/load';
import type { RunSpec } from '../../lib/spec/run-spec';
import { runOf } from '../support/runs';
import { trainerVerdicts } from '../support/trainer-layout';

const RUNS = path.join(__dirname, '../../runs');

function shippedRuns(): { file: string; run: RunSpec }[] {
  return readdirSync(RUNS).flatMap((file) => {
    const run = loadRun(readFileSync(path.join(RUNS, file), 'utf8')).value;
    return run?.code.builtin === 'builtin' ? [{ file, run }] : [];
  });
}

const layoutOf = (run: RunSpec) => {
  const found = findStrategy(run)?.layout(run);
  if (!found) return undefined;
  const { shard, replicate, tensor, context, expert } = found;
  return { shard, replicate, tensor, context, expert };
};

test('the trainer takes every shipped run file for the built-in trainer, in the layout that the plan shows', () => {
  const shipped = shippedRuns();
  expect(shipped.length).toBeGreaterThanOrEqual(4);
  const verdicts = trainerVerdicts(shipped.map(({ run }) => run));
  expect(verdicts.map((verdict, i) => [shipped[i]?.file, verdict])).toEqual(
    shipped.map(({ file, run }) => [file, { layout: layoutOf(run), compiles: fsdpCompiles(run) }]),
  );
});

const degree = fc.option(fc.constantFrom(1, 2, 3, 4, 8, 16), { nil: undefined });
const LATENT = { kvRank: 512, nopeHeadSize: 128, ropeHeadSize: 64, valueHeadSize: 128 };
const BALANCE = { 'balance-loss': 0.01, 'router-z-loss': 0.001 };
const arbitraryRun = fc.record({
  instanceCount: fc.constantFrom(1, 2, 4),
  parameters: fc.record({
    shard_degree: degree,
    replicate_degree: degree,
    tensor_parallel_degree: fc.constantFrom(undefined, undefined, 2, 4, 8),
    context_parallel_degree: fc.constantFrom(undefined, undefined, 2, 4),
    expert_parallel_degree: fc.constantFrom(undefined, undefined, undefined, 2, 8),
    compile: fc.constantFrom(undefined, undefined, true, false),
  }),
  experts: fc.constantFrom(undefined, undefined, 4, 8),
  routing: fc.constantFrom(undefined, { bias: true }),
  latentAttention: fc.constantFrom(undefined, undefined, undefined, LATENT),
  mtpLayers: fc.constantFrom(undefined, undefined, undefined, 1),
  lora: fc.constantFrom(undefined, undefined, undefined, { rank: 4 }, { rank: 4, targets: ['up_proj'] }),
  expertFfnHiddenSize: fc.constantFrom(undefined, undefined, undefined, 514),
  attentionHeads: fc.constantFrom(12, 16, 32),
  ffnHiddenSize: fc.constantFrom(1000, 1024, 1026),
  sequenceLength: fc.constantFrom(1001, 1020, 1024),
  globalBatchSize: fc.constantFrom(24, 32, 64),
  precision: fc.constantFrom('bf16', 'bf16', 'bf16', 'bf16', 'fp32', 'fp32', 'fp8', 'fp8', 'fp16', 'mxfp8'),
  fp8Recipe: fc.constantFrom(...Array<undefined>(14).fill(undefined), 'rowwise', 'blockwise'),
  objective: fc.constantFrom(undefined, undefined, 'sft', 'dpo'),
  documentMask: fc.constantFrom(undefined, undefined, true, false),
  weights: fc.constantFrom(undefined, 's3://{dataBucket}/weights/'),
  arguments: fc.constantFrom(
    {},
    {},
    { backend: 'fsdp1' },
    { 'z-loss': 0.001 },
    BALANCE,
    {
      ...BALANCE,
      backend: 'fsdp1',
    },
    { 'routing-bias-rate': 0.001 },
    { samples: 2 },
    { samples: 2, 'sample-tokens': 1000, 'sample-prompt-tokens': 10 },
  ),
});

function runFrom(a: typeof arbitraryRun extends fc.Arbitrary<infer T> ? T : never): RunSpec {
  const given = JSON.parse(JSON.stringify(a.parameters));
  return runOf({
    name: 'layout',
    model: {
      weights: a.weights,
      architecture: {
        ...{ layers: 2, hiddenSize: 64 * a.attentionHeads, attentionHeads: a.attentionHeads, vocabularySize: 256 },
        ...{ ffnHiddenSize: a.ffnHiddenSize, experts: a.experts, expertsPerToken: a.experts && 2 },
        expertFfnHiddenSize: a.experts && a.expertFfnHiddenSize,
        latentAttention: a.latentAttention,
        mtpLayers: a.mtpLayers,
        routing: a.experts ? a.routing : undefined,
      },
    },
    training: {
      ...{ sequenceLength: a.sequenceLength, globalBatchSize: a.globalBatchSize, microBatchSize: 1, steps: 5 },
      precision: a.precision,
      fp8Recipe: a.fp8Recipe,
      objective: a.objective,
      documentMask: a.documentMask,
      lora: a.weights && a.lora,
    },
    code: { source: 'builtin', arguments: a.arguments },
    compute: { instanceType: 'ml.p5.48xlarge', instanceCount: a.instanceCount },
    distribution: { library: 'fsdp', parameters: given },
    data: [{ channel: 'train', s3: 's3://{dataBucket}/tokens/' }],
  });
}

test('rules refuse exactly what the trainer would refuse on the instances, and both infer the same degrees', {
  timeout: 120_000,
}, () => {
  const seed = Number(process.env.SLIPWAY_TEST_SEED ?? Date.now() % 1e9);
  const runs = fc.sample(arbitraryRun, { numRuns: 2000, seed }).map(runFrom);
  const verdicts = trainerVerdicts(runs);
  const accepted = verdicts.filter((verdict) => verdict.layout);
  expect(accepted.length, `seed ${seed}`).toBeGreaterThan(10);
  runs.forEach((run, i) => {
    const verdict = verdicts[i];
    const errors = checkRun(run, {}).filter((issue) => issue.level === 'error');
    const context = `seed ${seed}, ${JSON.stringify(run.written)}, rules ${JSON.stringify(errors)}, trainer ${JSON.stringify(verdict)}`;
    if (verdict?.layout) {
      expect(errors, context).toEqual([]);
      expect(layoutOf(run), context).toEqual(verdict.layout);
      // FSDP1 never compiles; the trainer's verdict is FSDP2's.
      if (run.code.arguments.backend !== 'fsdp1') expect(fsdpCompiles(run), context).toBe(verdict.compiles);
    } else expect(errors.length, context).toBeGreaterThan(0);
  });
});
