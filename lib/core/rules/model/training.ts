import { orList } from '../../config/issue';
import { type Rule, rule, trainingRule, UNSHOWN, when } from '../../config/rule';
import { findStrategy } from '../../distribution';

/** A quantity of the model that a degree of the layout must divide, if the model has it; `of` contains its name and value. */
interface Divided {
  degree: number;
  name: string;
  size: number | undefined;
  of: string;
}

/** Tokens per optimizer step above which the loss per token suffers: AWS's best practices for SMP v2. */
const LARGE_BATCH_TOKENS = 4e6;

/** Rules for batch, sequence, steps and layout. */
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
    const divides = ({ degree, name, size, of }: Divided) =>
      when(degree > 1 && size !== undefined && size % degree !== 0, path, {
        level,
        must: `must have ${name} degree that divides the ${size} ${of}`,
        got: degree,
        fix: 'use a divisor',
      });
    return [
      ...divides({ degree: tensor, name: 'a tensor', size: a.attentionHeads, of: 'attention heads' }),
      ...divides({ degree: tensor, name: 'a tensor', size: a.kvHeads, of: 'key/value heads' }),
      ...divides({ degree: expert, name: 'an expert', size: a.experts, of: 'experts' }),
      ...when(expert > 1 && a.experts === undefined, path, {
        level,
        must: 'must have an expert degree of 1 for a model without experts',
        got: expert,
        fix: 'remove it',
      }),
      ...divides({ degree: pipeline, name: 'a pipeline', size: a.layers, of: 'layers' }),
    ];
  }),
  rule('training/offload', 'warning', ({ training }) =>
    when(training.activationOffload && training.activationCheckpointing === 'none', 'training.activationOffload', {
      must: 'must be used with activationCheckpointing selective or full',
      fix: 'use activationCheckpointing: full',
    }),
  ),
  rule(
    'training/large-batch',
    'warning, may acknowledge',
    ({ training: { globalBatchSize = 0, sequenceLength = 0 } }) =>
      when(globalBatchSize * sequenceLength > LARGE_BATCH_TOKENS, 'training.globalBatchSize', {
        must: 'should be below about 4 million tokens per step',
        got: `${((globalBatchSize * sequenceLength) / 1e6).toFixed(1)} million`,
        fix: 'reduce it, or use tensor parallelism',
      }),
  ),
].map(trainingRule);
