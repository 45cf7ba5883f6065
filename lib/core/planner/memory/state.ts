import { embeddingParameters, expertParametersOf } from '../../catalog/model/parameters';
import {
  adaptersOfBlock,
  elementBytesOf,
  expertTensorOf,
  keepsGatheredUntilForward,
  type LayoutInput,
  microBatchesOf,
  quantizedOfLayers,
  storedBytes,
} from '../layout';
import { meanLayerParameters } from '../model-size';
import type { MemoryConstants } from './constants';

/** Bytes on one GPU that live from step to step. */
export interface HeldState {
  parameters: number;
  gradients: number;
  optimizer: number;
  /** Bytes of the whole parameters, where FSDP keeps them gathered beyond a pass through their block. */
  gathered: number;
  /** Bytes of the rank's share of the parameters without sharding; gathered blocks never need more. */
  unsharded: number;
}

/** Whether gradients of several micro-batches are accumulated unsharded. */
const accumulatesWhole = (l: LayoutInput) => l.noSync === true && microBatchesOf(l) > 1;

/** Parameters, gradients and optimizer state of a stage with `layers` blocks, divided among the ranks that share them. */
export function heldState(l: LayoutInput, k: MemoryConstants, layers: number): HeldState {
  const tables = l.pipeline > 1 || l.model.tiedEmbeddings ? 1 : 2;
  const experts = (layers / l.model.layers) * expertParametersOf(l.model);
  const others =
    layers * meanLayerParameters(l.model) + tables * embeddingParameters(l.model) + (l.model.outer ?? 0) - experts;
  const bytes = bytesPerParameter(l, k);
  const ranks = l.shard * l.context;
  const sharing = expertTensorOf(l);
  const local = others / l.tensor + experts / (sharing * l.expert);
  // Sharded state is divided among all ranks, including those of an expert group.
  const sharded = others / l.tensor / ranks + experts / Math.max(l.tensor * ranks, sharing * l.expert);
  const quantized = quantizedOfLayers(l, layers, l.expert);
  const adapters = { local: l.model.layers * adaptersOfBlock(l), sharded: (l.adapters ?? 0) / l.tensor / ranks };
  const trained = l.adapters === undefined ? { local, sharded } : adapters;
  // FSDP offloads parameters together with their gradients, and therefore the optimizer; ZeRO-3 moves gradients to the optimizer.
  const parametersOnHost = l.offloadParameters && l.zeroStage >= 3;
  const optimizerOnHost = l.offloadOptimizer || (parametersOnHost && l.stack === 'fsdp');
  const gradientsOnHost = optimizerOnHost && l.zeroStage >= 2;
  const sums = accumulatesWhole(l);
  const isGathered = l.zeroStage >= 3 || (ranks === 1 && l.wrapsOneRank);
  const keepsGathered = isGathered && (l.keepsGathered || (sums && keepsGatheredUntilForward(l)));
  const held = storedBytes(bytes.parameters, local, quantized) + bytes.parameters * adapters.local;
  const heldSharded =
    storedBytes(bytes.parameters, sharded, quantizedOfLayers(l, layers, 1) / ranks) +
    bytes.parameters * adapters.sharded;
  return {
    parameters: (parametersOnHost ? 0 : l.zeroStage >= 3 ? heldSharded : held) + referenceBytes(l, local),
    gathered: keepsGathered ? storedBytes(elementBytesOf(l), local, quantized) : 0,
    gradients: gradientsOnHost && !sums ? 0 : gradientBytes(l, bytes.gradients, trained),
    optimizer: optimizerOnHost ? 0 : bytes.optimizer * (l.zeroStage >= 1 ? trained.sharded : trained.local),
    unsharded: held * (ranks === 1 && l.wrapsOneRank ? 1 : 1 - 1 / ranks),
  };
}

/** FSDP1 accumulates unsharded gradients in the precision of the products. */
function gradientBytes(l: LayoutInput, bytes: number, { local, sharded }: { local: number; sharded: number }): number {
  if (l.zeroStage < 2) return bytes * local;
  if (!accumulatesWhole(l)) return bytes * sharded;
  return (l.isFsdp1 ? elementBytesOf(l) : bytes) * local;
}

/**
 * A frozen copy of the model in the computation's precision, sharded like the model. FSDP does not reshard the root group of a model after
 * a pass (https://docs.pytorch.org/docs/stable/distributed.fsdp.fully_shard.html, `reshard_after_forward`, 2026-11-23), so the copy's
 * embedding and head stay gathered.
 */
function referenceBytes(l: LayoutInput, local: number): number {
  if (l.preferences !== 'copy') return 0;
  const bytes = elementBytesOf(l);
  if (l.zeroStage < 3) return bytes * local;
  const ranks = l.shard * l.context;
  const tables = (l.model.tiedEmbeddings ? 1 : 2) * embeddingParameters(l.model);
  return (bytes * local) / ranks + bytes * tables * (1 - 1 / ranks);
}

/** Bytes per parameter of each kind of state, by precision and library. */
function bytesPerParameter(l: LayoutInput, k: MemoryConstants) {
  const o = l.optimizerBytes;
  if (l.precision === 'bf16-pure') return { parameters: 2, gradients: l.optimizerInBackward ? 0 : 2, optimizer: o / 2 };
  if (l.precision === 'fp32' || l.stack === 'fsdp' || l.stack === 'jax')
    return { parameters: 4, gradients: 4, optimizer: o };
  const master = 4 + o;
  if (l.stack === 'deepspeed')
    return { parameters: 2, gradients: l.precision === 'fp16' ? 2 : k.deepspeedBf16GradientBytes, optimizer: master };
  if (l.stack === 'nanotron') return { parameters: 2, gradients: k.nanotronGradientBytes, optimizer: master };
  return { parameters: 2, gradients: l.gradientBytes, optimizer: master };
}
