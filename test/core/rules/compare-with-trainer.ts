import fc from 'fast-check';
import { expect } from 'vitest';
import { BUILTIN_ARGUMENTS } from '../../../lib/core/catalog/builtin-arguments';
import type { Issue } from '../../../lib/core/config/issue';
import type { RunSpec } from '../../../lib/core/config/run-spec';
import { findStrategy } from '../../../lib/core/distribution';
import { fsdpCompiles } from '../../../lib/core/distribution/fsdp';
import { checkRun } from '../../../lib/core/rules';
import { runOf } from '../../support/runs';
import { trainerVerdicts } from '../../support/trainer-layout';

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
/** Arguments that depend on more than the trainer's settings: the channels and variables of the job, and the objective. */
const DEPENDENT = ['data-channel', 'eval-channel', 'mlflow', 'wandb', 'beta'];
const ARGUMENTS = Object.keys(BUILTIN_ARGUMENTS.builtin).filter((name) => !DEPENDENT.includes(name));
/** Values of arguments, without lists, of which the trainer takes the last value; most are not what most arguments take. */
const argumentValue = fc.constantFrom<unknown>(
  0,
  1,
  2,
  0.5,
  1.5,
  -1,
  1e-7,
  1e21,
  true,
  false,
  null,
  [],

  ...['cosine', 'stop', '', '-x', '1e-3', '.5', '0x1', ' 1', '1_0', 'nan', 'inf', '+3'],
);
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
  lora: atTimes<object>(
    { rank: 4 },
    { rank: 4, quantization: 'nf4' },
    ...[['up_proj'], ['router', 'head'], ['kv_b_proj'], ['nope', 'q_proj'], ['head']].map((targets) => ({
      rank: 4,
      targets,
    })),
  ),
  tiedEmbeddings: atTimes(true),
  gatedMlp: atTimes(false),
  activationCheckpointing: atTimes('full', 'selective'),
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
  library: mostly('fsdp', 'smp-v2', 'deepspeed'),
  deepspeed: fc.constantFrom<object>({}, { optimizer: { type: 'Adam' } }, { compile: { deepcompile: true } }),
  mode: atTimes('direct'),
  collectives: atTimes('smddp'),
  arguments: mostly<object>(
    {},
    { backend: 'fsdp1' },
    { backend: 'fsdp2' },
    { 'z-loss': 0.001 },
    BALANCE,
    { ...BALANCE, backend: 'fsdp1' },
    { 'routing-bias-rate': 0.001 },
    { 'mtp-loss': 0 },
    { samples: 2 },
    { samples: 2, 'sample-tokens': 1000, 'sample-prompt-tokens': 10 },
    { samples: 2, 'sample-prompt-tokens': 5000 },
    { 'recompute-layers': 2 },
    { 'export-weights': true },
    { 'learnin-rate': 0.1 },
    { 'export-adapter': true },
  ),
  argument: fc.oneof(
    { weight: 3, arbitrary: fc.constant(undefined) },
    { weight: 1, arbitrary: fc.tuple(fc.constantFrom(...ARGUMENTS), argumentValue) },
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
        tiedEmbeddings: a.tiedEmbeddings,
        gatedMlp: a.gatedMlp,
      },
    },
    training: {
      ...{ sequenceLength: a.sequenceLength, globalBatchSize: a.globalBatchSize, microBatchSize: 1, steps: 5 },
      precision: a.precision,
      fp8Recipe: a.fp8Recipe,
      objective: a.objective,
      documentMask: a.documentMask,
      activationCheckpointing: a.activationCheckpointing,
      lora: a.weights && a.lora,
    },
    code: { source: 'builtin', arguments: { ...a.arguments, ...(a.argument && { [a.argument[0]]: a.argument[1] }) } },
    compute: { instanceType: 'ml.p5.48xlarge', instanceCount: a.instanceCount },
    distribution: {
      library: a.library,
      collectives: a.collectives,
      parameters: a.library === 'fsdp' ? given : a.library === 'deepspeed' ? a.deepspeed : {},
    },
    checkpoints: { mode: a.mode },
    data: [{ channel: 'train', s3: 's3://{dataBucket}/tokens/' }],
  });
}

/** A message without what to do. */
const requirementOf = (message: string) => message.split('; ')[0];

/** What the trainer sees in the modules of its model, which these verdicts do not create: test_adapter_families.py compares the layers. */
const isOfModules = ({ message }: Issue) =>
  /: must name layers of the model|: must be left out where layers/.test(message);

/** The refusals of the trainer that no error says in the same words, save for what to do. */
function unsaid(issues: readonly string[], errors: readonly Issue[]): string[] {
  const said = new Set(errors.map(({ message }) => requirementOf(message)));
  // The trainer does not know to which option a stray word belongs.
  const isStray = (one: string) =>
    one.startsWith('code.arguments: ') && errors.some(({ rule }) => rule === 'code/builtin-arguments');
  return issues.filter((one) => !said.has(requirementOf(one)) && !isStray(one));
}

/** Draws runs, and has rules and trainer judge each: they must refuse the same ones with the same words, and infer the same degrees. Returns how many pass. */
export function compareWithTrainer(numRuns: number): number {
  const seed = Number(process.env.SLIPWAY_TEST_SEED ?? Date.now() % 1e9);
  const runs = fc.sample(arbitraryRun, { numRuns, seed }).map(runFrom);
  const verdicts = trainerVerdicts(runs);
  runs.forEach((run, i) => {
    const verdict = verdicts[i];
    const errors = checkRun(run, {}).filter((issue) => issue.level === 'error' && !isOfModules(issue));
    const context = `seed ${seed}, ${JSON.stringify(run.written)}, rules ${JSON.stringify(errors)}, trainer ${JSON.stringify(verdict)}`;
    // SMP v2, DeepSpeed and SMDDP have limits of their own besides those of the trainer.
    const { library, collectives } = run.distribution;
    if (verdict?.layout && (library !== 'fsdp' || collectives === 'smddp')) return;
    if (verdict?.layout) {
      expect(errors, context).toEqual([]);
      expect(layoutOf(run), context).toEqual(verdict.layout);
      // FSDP1 never compiles; the trainer's verdict is FSDP2's.
      if (run.code.arguments.backend !== 'fsdp1') expect(fsdpCompiles(run), context).toBe(verdict.compiles);
    } else expect(unsaid(verdict?.issues ?? [], errors), context).toEqual([]);
  });
  return verdicts.filter((verdict) => verdict.layout).length;
}
