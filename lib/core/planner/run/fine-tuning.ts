import type { ParameterShape } from '../../catalog/model/parameters';
import { type Issue, issue } from '../../config/issue';
import type { RunSpec } from '../../config/run-spec';
import type { LayoutInput } from '../layout';

/** The fields of a layout that fine-tuning changes. */
export type FineTuning = Pick<LayoutInput, 'adapters' | 'adaptedOutputs' | 'preferences' | 'quantized'>;

/** Input and output sizes of the linear layers of a block, by the trainer's names (containers/trainer: attention.py, feed_forward.py). */
function linearSizes(m: ParameterShape): Readonly<Record<string, readonly [inputs: number, outputs: number]>> {
  const [queries, keys] = [m.heads * m.headSize, m.kvHeads * m.headSize];
  const dense = { up_proj: [m.hidden, m.ffn], down_proj: [m.ffn, m.hidden] } as const;
  return {
    q_proj: [m.hidden, queries],
    k_proj: [m.hidden, keys],
    v_proj: [m.hidden, keys],
    o_proj: [queries, m.hidden],
    ...(m.experts === 1 && dense),
    ...(m.experts === 1 && m.mlpMatrices === 3 && { gate_proj: [m.hidden, m.ffn] as const }),
  };
}

/**
 * Number of parameters in a run's adapters (arXiv 2106.09685): rank x (inputs + outputs) of each layer that it names; undefined without
 * adapters.
 */
function adapterParameters(run: RunSpec, model: ParameterShape): number | Issue[] | undefined {
  const { lora } = run.training;
  if (!lora) return undefined;
  const sizes = linearSizes(model);
  const unknown = lora.targets.filter((name) => name !== 'head' && !sizes[name]);
  if (model.latent || model.kinds || unknown.length > 0)
    return [
      issue('plan/unknown', 'error', 'training.lora.targets', {
        must: `must be layers of dense blocks that are all alike for a plan (${Object.keys(sizes).join(', ')}, head)`,
        got: lora.targets,
        fix: 'plan without lora for an upper bound',
      }),
    ];
  const inBlock = lora.targets.reduce((sum, name) => sum + (sizes[name] ?? [0, 0])[0] + (sizes[name] ?? [0, 0])[1], 0);
  const ofHead = lora.targets.includes('head') ? model.hidden + model.vocabulary : 0;
  return lora.rank * (model.layers * inBlock + ofHead);
}

/** Outputs of the layers of a block that have adapters. */
function outputsOf(run: RunSpec, model: ParameterShape): number {
  const sizes = linearSizes(model);
  return (run.training.lora?.targets ?? []).reduce((sum, name) => sum + (sizes[name]?.[1] ?? 0), 0);
}

/** With 4-bit weights, the trainer computes experts one after the other, which is several times slower than its grouped kernel. */
const slowExperts = (): Issue[] => [
  issue('plan/unknown', 'error', 'training.lora.quantization', {
    must: 'must be left out for a plan of a mixture of experts',
    got: 'nf4',
    fix: 'plan without it for an upper bound of the memory',
  }),
];

/** Adapters and preferences of a run, or why they cannot be planned. */
export function fineTuningOf(run: RunSpec, model: ParameterShape): FineTuning | Issue[] {
  const adapters = adapterParameters(run, model);
  if (Array.isArray(adapters)) return adapters;
  const quantized = run.training.lora?.quantization !== undefined;
  if (quantized && model.experts > 1) return slowExperts();
  const reference = adapters === undefined ? 'copy' : 'adapters';
  return {
    ...(adapters !== undefined && { adapters, adaptedOutputs: outputsOf(run, model) }),
    ...(quantized && { quantized }),
    ...(run.training.objective === 'dpo' && { preferences: reference }),
  };
}

/** The assumptions of a plan about fine-tuning. */
export function assumptionsOfFineTuning({ adapters, preferences, quantized }: FineTuning): string[] {
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
  ];
}
