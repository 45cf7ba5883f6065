import constants from '../trainer-constants.json';
import { type BlockShape, kindsOfBlocks, type ParameterShape, parameterShape } from './parameters';
import type { ModelShape } from './shape';

/**
 * Linear layers of a block that have the same name and size in the built-in trainer, for adapters and quantization. A test compares them
 * with the trainer's modules (test/containers/test_adapter_families.py).
 */
export type LinearLayers = ReturnType<typeof layer>;

/** Layers that are not quantized: they are small and decide for whole tokens. */
const DECIDING = ['router', 'shared_gate'];

/** `count`: their number in a block; `active`: how many of them process one token. */
const layer = (name: string, inputs: number, outputs: number) => ({ name, inputs, outputs, count: 1, active: 1 });

function ofAttention({ hidden, heads, kvHeads, headSize, valueHeadSize = headSize, latent }: BlockShape) {
  const [queries, output] = [heads * headSize, layer('o_proj', heads * valueHeadSize, hidden)];
  if (!latent)
    return [
      layer('q_proj', hidden, queries),
      layer('k_proj', hidden, kvHeads * headSize),
      layer('v_proj', hidden, kvHeads * headSize),
      output,
    ];
  const { qRank, kvRank, nopeHeadSize, ropeHeadSize } = latent;
  return [
    ...(qRank
      ? [layer('q_a_proj', hidden, qRank), layer('q_b_proj', qRank, queries)]
      : [layer('q_proj', hidden, queries)]),
    layer('kv_a_proj_with_mqa', hidden, kvRank + ropeHeadSize),
    layer('kv_b_proj', kvRank, heads * (nopeHeadSize + valueHeadSize)),
    output,
  ];
}

const ofFeedForward = ({ hidden, mlpMatrices }: BlockShape, inner: number): LinearLayers[] => [
  ...(mlpMatrices === 3 ? [layer('gate_proj', hidden, inner)] : []),
  layer('up_proj', hidden, inner),
  layer('down_proj', inner, hidden),
];

/** The linear layers of one block. */
function linearLayers(m: BlockShape): LinearLayers[] {
  if (m.experts === 1 && !m.soleExpert) return [...ofAttention(m), ...ofFeedForward(m, m.ffn)];
  return [
    ...ofAttention(m),
    ...ofFeedForward(m, m.ffn).map((one) => ({ ...one, count: m.experts, active: m.expertsPerToken })),
    ...(m.sharedFfn ? ofFeedForward(m, m.sharedFfn) : []),
    layer('router', m.hidden, m.experts),
    ...(m.sharedGate ? [layer('shared_gate', m.hidden, 1)] : []),
  ];
}

/** The linear layers of all blocks that `targets` names, by default all, with the number of blocks that have them. */
export const layersOfBlocks = (model: ParameterShape, targets?: readonly string[]) =>
  kindsOfBlocks(model).flatMap(({ layers, block }) =>
    linearLayers(block)
      .filter(({ name }) => targets?.includes(name) ?? true)
      .map((one) => ({ ...one, blocks: layers })),
  );

/**
 * Number of parameters in low-rank adapters (arXiv 2106.09685): rank x (inputs + outputs) of each layer of blocks that they name and that
 * is `counted`, and of the head.
 */
export function adapterParameters(
  model: ParameterShape,
  { rank, targets }: { rank: number; targets: readonly string[] },
  counted?: (layers: LinearLayers) => boolean,
): number {
  const inBlocks = layersOfBlocks(model, targets)
    .filter((one) => counted?.(one) ?? true)
    .reduce((sum, { blocks, count, inputs, outputs }) => sum + blocks * count * (inputs + outputs), 0);
  return rank * (inBlocks + (targets.includes('head') && !counted ? model.hidden + model.vocabulary : 0));
}

/** The names of layers that can have low-rank adapters. */
export const adaptableLayers = (shape: ModelShape): string[] => [
  ...new Set(layersOfBlocks(parameterShape(shape)).map(({ name }) => name)),
  ...(shape.tiedEmbeddings ? [] : ['head']),
];

/** Elements of a quantized weight that have a common scale. */
export const QUANTIZED_BLOCK = constants.elementsPerScale;

/** Bytes of a quantized element: 4 bits, and its share of a scale in fp32. */
export const QUANTIZED_BYTES = 0.5 + 4 / QUANTIZED_BLOCK;

/** Layers that quantization does not support, because blocks of elements would cross rows, with their numbers of inputs. */
export const unquantizableLayers = (shape: ModelShape): string[] =>
  [
    ...new Set(
      layersOfBlocks(parameterShape(shape))
        .filter(({ name, inputs }) => !DECIDING.includes(name) && inputs % QUANTIZED_BLOCK !== 0)
        .map(({ name, inputs }) => `${name} ${inputs}`),
    ),
  ].sort();
