import FAMILIES from '../../catalog/model/imported-families.json';
import type { ModelShape } from '../../catalog/model/shape';
import { partsBeyondLlama, unsplitParts, untrainedParts } from '../../catalog/model/trainer-limits';
import { configKeys } from '../../config/inline';
import { type Finding, type Rule, rule, trainingRule, when } from '../../config/rule';
import type { RunSpec } from '../../config/run-spec';
import { findStrategy } from '../../distribution';

const IMPORTED = Object.keys(FAMILIES);

function foreignParts(run: RunSpec, shape: ModelShape): Finding[] {
  const { library } = run.distribution;
  const tensor = findStrategy(run)?.layout(run)?.tensor ?? 1;
  const parts = partsBeyondLlama(shape);
  const unsplit = unsplitParts(shape);
  return [
    ...when(library === 'fsdp' && tensor > 1 && unsplit.length > 0, 'distribution.parameters.tensor_parallel_degree', {
      must: `must be 1 for a model with ${unsplit.join(', ')} in the built-in trainer`,
      fix: 'remove it, and shard over more ranks',
    }),
    ...when(library === 'deepspeed' && shape.routing?.bias === true, 'distribution.library', {
      must: 'must be fsdp for a model with routing.bias in the built-in trainer',
      fix: 'use fsdp',
    }),
    ...when(library === 'smp-v2' && parts.length > 0, 'distribution.library', {
      must: `must be fsdp or deepspeed for a model with ${parts.join(', ')} in the built-in trainer`,
      fix: 'use fsdp',
    }),
  ];
}

/** Rules for the models that the built-in trainer supports. */
export const BUILTIN_MODEL_RULES: readonly Rule[] = [
  rule('model/builtin-parts', 'error', (run) => {
    const shape = run.model?.architecture;
    if (run.code.builtin !== 'builtin' || !shape) return [];
    const way = (['preset', 'config', 'architecture'] as const).find((one) => run.written.model?.[one] !== undefined);
    return untrainedParts(shape).map((part) => ({
      path: `model.${way}`,
      must: 'must be a model that the built-in trainer supports',
      got: part,
      fix: 'use another model, or custom code',
    }));
  }),
  rule('model/builtin-split', 'error', (run) =>
    run.code.builtin === 'builtin' && run.model ? foreignParts(run, run.model.architecture) : [],
  ),
  /** Weights that the built-in trainer does not read: quantized ones, and those of a family whose files call or arrange tensors otherwise. */
  rule('model/builtin-weights', 'error', ({ code, model, written }) => {
    if (code.builtin !== 'builtin' || !model?.weights) return [];
    const modelType = model.architecture.family?.modelType;
    const { quantization_config: quantized } = configKeys(written.model?.config);
    return [
      ...when(modelType !== undefined && !IMPORTED.includes(modelType), 'model.weights', {
        must: `must be weights of a family that the built-in trainer imports: ${IMPORTED.join(', ')}`,
        got: modelType,
        fix: 'use custom code; for weights that the built-in trainer exported, give the config.json beside them as model.config',
      }),
      ...when(quantized !== undefined && quantized !== null, 'model.config', {
        must: 'must have no quantization_config with model.weights: the built-in trainer reads bf16, fp16 and fp32',
        got: quantized,
        fix: 'use weights that are not quantized, with their config.json',
      }),
    ];
  }),
].map(trainingRule);
