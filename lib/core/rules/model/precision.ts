import { type Accelerator, findInstanceType, lacksBf16 } from '../../catalog/instances/instances';
import { type Rule, rule, trainingRule, when } from '../../config/rule';
import { trainingInstanceTypes } from '../../distribution/strategy';

/**
 * B200, B300 and GB200. torch.nn.functional.scaled_mm supports MXFP8 and NVFP4 on them; RTX PRO 6000, also a Blackwell GPU, has other
 * kernels.
 */
const hasBlockScales = ({ model }: Accelerator): boolean => /B[23]00/.test(model);

/** Rules for the number formats of matrix products. */
export const PRECISION_RULES: readonly Rule[] = [
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
