import { layerParametersOfRank } from '../../catalog/model/parameters';
import type { LayoutInput } from '../layout';
import {
  adaptersOfBlock,
  elementBytesOf,
  expertTensorOf,
  keepsGatheredUntilForward,
  microBatchesOf,
  quantizedOfBlock,
  storedBytes,
} from '../layout';
import { shardGroupSize } from './overlap';

/**
 * Communication of one rank for one block's parameters and gradients in a step; a test compares the counts with the trainer's own calls.
 */
export interface ShardTraffic {
  /** Parameters of the block before sharding. */
  parameters: number;
  /** Parameters that have gradients. */
  trained: number;
  /** Number of AllGathers of all micro-batches, how many of them precede a forward pass, and the bytes of each. */
  gathers: number;
  forwardGathers: number;
  gatheredBytes: number;
  /** AllGathers of the same size for a reference's forward passes (DPO). */
  referenceGathers: number;
  /** Number of ReduceScatters of gradients. */
  scatters: number;
  /** Number of AllReduces over replicas, of the rank's own shard. */
  replicaSums: number;
}

/** How often the gradients of a step are summed over replicas. */
export const sumsOfStep = (l: LayoutInput): number => (l.isFsdp1 && !l.noSync ? microBatchesOf(l) : 1);

/**
 * ZeRO-3 and FSDP gather each block's parameters twice and reduce-scatter its gradients in every micro-batch; replicas sum theirs once per
 * step. With no_sync, parameters stay gathered from one backward pass to the next forward pass, and gradients are reduce-scattered once.
 * With `keepsGathered`, parameters stay gathered from a forward pass to its backward pass.
 */
export function shardTraffic(l: LayoutInput): ShardTraffic {
  const parameters = layerParametersOfRank(l.model, l.tensor, expertTensorOf(l) * l.expert);
  const micro = microBatchesOf(l);
  const isSharded = l.zeroStage === 3 && shardGroupSize(l) > 1;
  const once = l.noSync ? 1 : micro;
  const forwardGathers = keepsGatheredUntilForward(l) ? 1 : micro;
  return {
    parameters,
    trained: l.adapters === undefined ? parameters : adaptersOfBlock(l),
    gathers: isSharded ? forwardGathers + (l.keepsGathered ? 0 : micro) : 0,
    forwardGathers: isSharded ? forwardGathers : 0,
    // A reference without adapters shares its parameters with the model, which keeps them gathered.
    referenceGathers: isSharded && l.preferences && !(l.keepsGathered && l.preferences === 'adapters') ? micro : 0,
    gatheredBytes: storedBytes(elementBytesOf(l), parameters + adaptersOfBlock(l), quantizedOfBlock(l)),
    scatters: isSharded ? once : 0,
    replicaSums: l.replicate > 1 ? sumsOfStep(l) : 0,
  };
}
