import fc from 'fast-check';
import { expect } from 'vitest';
import { findStrategy } from '../../lib/distribution';
import { fsdpCompiles } from '../../lib/distribution/fsdp';
import { checkRun } from '../../lib/rules';
import type { RunSpec } from '../../lib/spec/run-spec';
import { runOf } from '../support/runs';
import { trainerVerdicts } from '../support/trainer-layout';

/** The degrees that the plan of a run shows. */
export const layoutOf = (run: RunSpec) => {
  const found = findStrategy(run)?.layout(run);
  if (!found) return undefined;
  const { shard, replicate, tensor, context, expert } = found;
  return { shard, replicate, tensor, context, expert };
};

/** Mostly the first: many things that are each refused at times would leave hardly a run that is taken. */
const mostly = <T>(first: T, ...others: T[]) =>
  fc.oneof({ weight: 3, arbitrary: fc.constant(first) }, { weight: 1, arbitrary: fc.constantFrom(...others) });
/** Mostly left out. */
const atTimes = <T>(...values: T[]) => mostly<T | undefined>(undefined, ...values);
const degree = atTimes(1, 2, 3, 4, 8, 16);
const LATENT = { kvRank: 512, nopeHeadSize: 128, ropeHeadSize: 64, valueHeadSize: 128 };
const BALANCE = { 'balance-loss': 0.01, 'router-z-loss': 0.001 };
const arbitraryRun = fc.record({
  instanceCount: fc.constantFrom(1, 2, 4),
  parameters: fc.record({
    shard_degree: degree,
    replicate_degree: degree,
    tensor_parallel_degree: atTimes(2, 4, 8),
    context_parallel_degree: atTimes(2, 4),
    expert_parallel_degree: atTimes(2, 8),
    compile: atTimes(true, false),
  }),
  experts: atTimes(4, 8),
  routing: fc.constantFrom(undefined, { bias: true }),
  latentAttention: atTimes(LATENT),
  mtpLayers: atTimes(1),
  lora: atTimes<object>({ rank: 4 }, { rank: 4, targets: ['up_proj'] }),
  expertFfnHiddenSize: atTimes(514),
  attentionHeads: fc.constantFrom(12, 16, 32),
  ffnHiddenSize: mostly(1024, 1000, 1026),
  sequenceLength: mostly(1024, 1001, 1020),
  globalBatchSize: mostly(64, 24, 32),
  precision: mostly('bf16', 'fp32', 'fp8', 'fp16', 'mxfp8'),
  fp8Recipe: atTimes('rowwise', 'blockwise'),
  objective: atTimes('sft', 'dpo'),
  documentMask: atTimes(true, false),
  weights: fc.constantFrom(undefined, 's3://{dataBucket}/weights/'),
  arguments: mostly<object>(
    {},
    { backend: 'fsdp1' },
    { 'z-loss': 0.001 },
    BALANCE,
    { ...BALANCE, backend: 'fsdp1' },
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

/** Draws runs, and has rules and trainer judge each: they must refuse the same ones, and infer the same degrees. Returns how many pass. */
export function compareWithTrainer(numRuns: number): number {
  const seed = Number(process.env.SLIPWAY_TEST_SEED ?? Date.now() % 1e9);
  const runs = fc.sample(arbitraryRun, { numRuns, seed }).map(runFrom);
  const verdicts = trainerVerdicts(runs);
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
  return verdicts.filter((verdict) => verdict.layout).length;
}
