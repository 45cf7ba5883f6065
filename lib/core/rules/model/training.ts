import { type Accelerator, findInstanceType, lacksBf16 } from '../../catalog/instances/instances';
import { orList } from '../../config/issue';
import { type Rule, rule, trainingRule, UNSHOWN, when } from '../../config/rule';
import { findStrategy } from '../../distribution';
import { trainingInstanceTypes } from '../../distribution/strategy';

/** Tokens per optimizer step above which the loss per token suffers: AWS's best practices for SMP v2. */
const LARGE_BATCH_TOKENS = 4e6;

/**
 * B200, B300 and GB200. torch.nn.functional.scaled_mm supports MXFP8 and NVFP4 on them; RTX PRO 6000, also a Blackwell GPU, has other
 * kernels.
 */
const hasBlockScales = ({ model }: Accelerator): boolean => /B[23]00/.test(model);

/** Rules for batch, sequence, steps, layout and number formats. */
export const TRAINING_RULES: readonly Rule[] = [
  rule('training/duration', 'error', (run) => {
    const { steps, totalTokens } = run.training;
    const isBuiltin = run.code.builtin === 'builtin';
    return [
      ...when(steps !== undefined && totalTokens !== undefined, 'training.steps', {
        must: 'must not be given together with training.totalTokens',
        got: `steps ${steps} and totalTokens ${totalTokens}`,
        fix: 'keep one of the two',
      }),
      ...when(isBuiltin && steps === undefined && totalTokens === undefined, 'training', {
        must: 'must set the length of training: totalTokens or steps',
        got: UNSHOWN,
        fix: 'add totalTokens or steps',
      }),
      ...when(isBuiltin && run.training.sequenceLength === undefined, 'training.sequenceLength', {
        must: 'must be set for the built-in trainer',
        fix: 'add sequenceLength',
      }),
      ...when(isBuiltin && run.training.globalBatchSize === undefined, 'training.globalBatchSize', {
        must: 'must be set for the built-in trainer',
        fix: 'add globalBatchSize (sequences per step)',
      }),
    ];
  }),
  rule('training/global-batch', 'error', (run) => {
    const { globalBatchSize, microBatchSize } = run.training;
    const layout = findStrategy(run)?.layout(run);
    if (!globalBatchSize || !layout || layout.dataParallel <= 0) return [];
    const unit = (microBatchSize ?? 1) * layout.dataParallel;
    if (globalBatchSize % unit === 0) return [];
    const below = Math.floor(globalBatchSize / unit) * unit;
    const choices = [below, below + unit].filter((n) => n > 0);
    return {
      path: 'training.globalBatchSize',
      must: `must be a multiple of microBatchSize ${microBatchSize ?? 1} x ${layout.dataParallel} data-parallel ranks = ${unit}`,
      fix: `use ${orList(choices)}`,
    };
  }),
  rule('training/divisibility', 'warning', (run) => {
    const layout = findStrategy(run)?.layout(run);
    const a = run.model?.architecture;
    if (!layout || !a) return [];
    const { tensor, expert, pipeline } = layout;
    const path = 'distribution.parameters';
    const level = run.code.builtin ? 'error' : 'warning';
    const divides = (name: string, degree: number, of: string, size: number | undefined) =>
      when(degree > 1 && size !== undefined && size % degree !== 0, path, {
        level,
        must: `must have ${name} degree that divides the ${size} ${of}`,
        got: degree,
        fix: 'use a divisor',
      });
    return [
      ...divides('a tensor', tensor, 'attention heads', a.attentionHeads),
      ...divides('a tensor', tensor, 'key/value heads', a.kvHeads),
      ...divides('an expert', expert, 'experts', a.experts),
      ...when(expert > 1 && a.experts === undefined, path, {
        level,
        must: 'must have an expert degree of 1 for a model without experts',
        got: expert,
      }),
      ...divides('a pipeline', pipeline, 'layers', a.layers),
    ];
  }),
  rule('training/offload', 'warning', ({ training }) =>
    when(training.activationOffload && training.activationCheckpointing === 'none', 'training.activationOffload', {
      must: 'must be used with activationCheckpointing selective or full',
      fix: 'use activationCheckpointing: full',
    }),
  ),
  rule('training/large-batch', 'warning, may acknowledge', ({ training }) => {
    const tokens = (training.globalBatchSize ?? 0) * (training.sequenceLength ?? 0);
    return when(tokens > LARGE_BATCH_TOKENS, 'training.globalBatchSize', {
      must: 'should be below about 4 million tokens per step',
      got: `${(tokens / 1e6).toFixed(1)} million`,
      fix: 'reduce it, or use tensor parallelism',
    });
  }),
  rule('training/precision', 'error', (run) => {
    const given = run.written.training?.precision;
    const types = trainingInstanceTypes(run).flatMap((type) => findInstanceType(type) ?? []);
    return types.flatMap(({ name, accelerator }) => {
      if (!accelerator)
        return when(given !== undefined && given !== 'fp32' && given !== 'bf16', 'training.precision', {
          must: `must be fp32 or bf16 on ${name}, which has no accelerator`,
          fix: 'use fp32',
        });
      const old = lacksBf16(accelerator);
      const noFp8 =
        old || accelerator.architecture === 'Ampere' || (accelerator.kind === 'neuron' && !accelerator.fp8DenseTflops);
      return [
        ...when(given === 'bf16' && old, 'training.precision', {
          must: `must be fp16 or fp32 on ${name} (${accelerator.model} has no bf16)`,
          fix: 'use fp16, or ml.g5, ml.p4d and newer',
        }),
        ...when(given === 'fp8' && noFp8, 'training.precision', {
          must: `must be bf16 on ${name} (${accelerator.model} has no fp8)`,
          fix: 'use bf16, or ml.p5 and newer',
        }),
        ...when((given === 'mxfp8' || given === 'nvfp4') && !hasBlockScales(accelerator), 'training.precision', {
          must: `must be bf16${noFp8 ? '' : ' or fp8'} on ${name} (${accelerator.model} has no block-scaled matrix products)`,
          fix: 'use one of them, or ml.p6-b200.48xlarge and newer',
        }),
      ];
    });
  }),
  /** Recipes of fp8: the error message of PyTorch 2.15 is "DeepSeek style (1x128, 128x128) scaling only supported in CUDA for SM90". */
  rule('training/fp8-recipe', 'error', (run) => {
    const { fp8Recipe: given, precision: type } = run.training;
    const builtin = run.code.builtin === 'builtin';
    const others = trainingInstanceTypes(run).filter(
      (name) => findInstanceType(name)?.accelerator?.architecture !== 'Hopper',
    );
    return [
      ...when(given !== undefined && type !== 'fp8', 'training.fp8Recipe', {
        must: 'must be used with training.precision fp8',
        fix: 'set training.precision: fp8, or remove it',
      }),
      ...when(given === 'blockwise' && builtin, 'training.fp8Recipe', {
        must: 'must be tensorwise or rowwise for the built-in trainer',
        fix: 'use rowwise, or custom code',
      }),
      ...when(given === 'blockwise' && !builtin && others.length > 0, 'training.fp8Recipe', {
        level: 'warning',
        must: `must be tensorwise or rowwise on ${others.join(', ')}: PyTorch supports matrix products with blocks of 128 only on Hopper`,
        fix: 'use rowwise, or training.precision: mxfp8 on B200 and newer',
      }),
    ];
  }),
].map(trainingRule);
