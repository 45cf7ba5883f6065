import { adapterParameters, layersOfBlocks } from '../../catalog/model/linear-layers';
import { kindsOfBlocks, type ParameterShape } from '../../catalog/model/parameters';
import { type Issue, issue } from '../../config/issue';
import type { RunSpec } from '../../config/run-spec';
import type { LayoutInput } from '../layout';

type Lora = NonNullable<RunSpec['training']['lora']>;

/** The fields of a layout that fine-tuning changes. */
export type FineTuning = Pick<
  LayoutInput,
  'adapters' | 'expertAdapters' | 'adaptedOutputs' | 'preferences' | 'quantized'
>;

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

/** Mean number of outputs per token of the layers of a block that have adapters. */
const outputsOf = (lora: Lora, model: ParameterShape): number =>
  layersOfBlocks(model, lora.targets).reduce((sum, { active, outputs, blocks }) => sum + blocks * active * outputs, 0) /
  model.layers;

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

/** The assumptions of a plan about fine-tuning. */
export function assumptionsOfFineTuning({ adapters, preferences, quantized, model }: LayoutInput): string[] {
  const reference =
    preferences === 'copy'
      ? 'a frozen copy of the model, sharded like it, which is counted under parameters'
      : 'the model without its adapters';
  return [
    ...(preferences
      ? [
          `batches count pairs of two full sequences; the reference is ${reference}, and runs forward before each micro-batch`,
          'no published run measures preferences: the interval is wider, and MFU counts the trained model alone',
        ]
      : []),
    ...(adapters === undefined
      ? []
      : [
          `${(adapters / 1e6).toFixed(1)} M parameters of adapters are trained; their own products are not counted, activations are those of full training (an upper bound)`,
          'only six published runs measure adapters, all of rank 16: the interval is wider, and MFU counts the gradients of the frozen weights too, as the trainer prints it',
        ]),
    ...(quantized
      ? [
          'the frozen matrices of blocks take 0.5625 bytes per parameter (4 bits, and a scale in fp32 per 64); embedding, head and norms keep their precision',
          'each product unpacks its matrix first, for four times as long as reading and writing it takes, as with bitsandbytes 0.41 on A100; newer kernels may take less, so the interval is wider',
        ]
      : []),
    ...(quantized && model.experts > 1
      ? [
          'experts in 4 bits are computed one after the other: launching their kernels takes 0.15 ms each in a forward pass, which no published run measures',
        ]
      : []),
  ];
}
