import { hasExperts, headSizeOf, sharedFfnOf } from './parameters';
import type { ModelShape } from './shape';

/** Elements of a quantized weight that have a common scale; PACKED_BLOCK in containers/trainer/slipway_trainer/architecture.py. */
export const QUANTIZED_BLOCK = 64;

/** Bytes of a quantized element: 4 bits, and its share of a scale in fp32. */
export const QUANTIZED_BYTES = 0.5 + 4 / QUANTIZED_BLOCK;

/**
 * The numbers of inputs of linear layers in blocks that quantization does not support, because blocks of elements would cross rows; the
 * trainer has the same list.
 */
export function unquantizableSizes(shape: ModelShape): [name: string, size: number][] {
  const { experts, latentAttention: latent } = shape;
  const hasDense = Array.from({ length: shape.layers }, (_, layer) => layer).some((layer) => !hasExperts(shape, layer));
  const sizes: [string, number][] = [
    ['hiddenSize', shape.hiddenSize],
    ['ffnHiddenSize', hasDense ? shape.ffnHiddenSize : 0],
    ['expertFfnHiddenSize', experts ? (shape.expertFfnHiddenSize ?? shape.ffnHiddenSize) : 0],
    ['the inner size of shared experts', experts ? sharedFfnOf(shape) : 0],
    ['attentionHeads x headSize', shape.attentionHeads * (latent?.valueHeadSize ?? headSizeOf(shape))],
    ['latentAttention.qRank', latent?.qRank ?? 0],
    ['latentAttention.kvRank', latent?.kvRank ?? 0],
  ];
  return sizes.filter(([, size]) => size % QUANTIZED_BLOCK !== 0);
}
