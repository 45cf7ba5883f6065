import { adapterParameters, layersOfBlocks } from '../../catalog/model/linear-layers';
import { kindsOfBlocks, type ParameterShape } from '../../catalog/model/parameters';
import { type Issue, issue } from '../../config/issue';
import type { RunSpec } from '../../config/run-spec';
import type { LayoutInput } from '../layout';

type Lora = NonNullable<RunSpec['training']['lora']>;

/** Why adapters cannot be planned: layers that the model does not have, or a model of other layers than those of the built-in trainer. */
function unknownLayers(lora: Lora, model: ParameterShape): Issue[] {
  const names = layersOfBlocks(model, lora.targets).map(({ name }) => name);
  const isOther = kindsOfBlocks(model).some(({ block }) => block.recurrence ?? block.attention ?? block.expertHidden);
  if (!isOther && lora.targets.every((name) => name === 'head' || names.includes(name))) return [];
  return [
    issue('plan/unknown', 'error', 'training.lora.targets', {
      must: 'must be layers of a model that the built-in trainer supports for a plan',
      got: lora.targets,
      fix: 'plan without lora for an upper bound',
    }),
  ];
}

const outputsOf = (lora: Lora, model: ParameterShape): number =>
  layersOfBlocks(model, lora.targets).reduce((sum, { active, outputs, blocks }) => sum + blocks * active * outputs, 0) /
  model.layers;

type FineTuning = Pick<LayoutInput, 'adapters' | 'expertAdapters' | 'adaptedOutputs' | 'preferences' | 'quantized'>;

/** Adapters and preferences of a run, or why they cannot be planned. */
export function fineTuningOf({ training }: RunSpec, model: ParameterShape): FineTuning | Issue[] {
  const { lora, objective } = training;
  const unknown = lora ? unknownLayers(lora, model) : [];
  if (unknown.length > 0) return unknown;
  return {
    ...(lora && {
      adapters: adapterParameters(model, lora),
      expertAdapters: adapterParameters(model, lora, ({ count }) => count > 1),
      adaptedOutputs: outputsOf(lora, model),
    }),
    ...(lora?.quantization && { quantized: true }),
    ...(objective === 'dpo' && { preferences: lora ? 'adapters' : 'copy' }),
  };
}
