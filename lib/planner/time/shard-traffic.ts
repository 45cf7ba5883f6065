import { layerParametersOfRank } from '../../catalog/model/parameters';
import type { LayoutInput } from '../layout';
import { expertTensorOf, microBatchesOf } from '../layout';
import { shardGroupSize } from './overlap';

/**
 * Communication of one rank for one block's parameters and gradients in a step; a test compares the counts with the trainer's own calls.
 */
export interface ShardTraffic {
  /** Parameters of the block before sharding. */
  parameters: number;
  /** Parameters that have gradients. */
  trained: number;
  /** Number of AllGathers of all micro-batches, and the bytes of each. */
  gathers: number;
  gatheredBytes: number;
  /** AllGathers of the same size for a reference's forward passes (DPO). */
  referenceGathers: number;
  /** Number of ReduceScatters of gradients. */
  scatters: number;
  /** AllReduces over replicas, of the rank's own shard. */
  replicaSums: number;
}

/** Parameters are gathered in 16 bit. */
const GATHERED_BYTES = 2;

/**
 * ZeRO-3 and FSDP gather each block's parameters twice and reduce-scatter its gradients in every micro-batch; replicas sum theirs once per
 * step. With no_sync, parameters stay gathered from one backward pass to the next forward pass, and gradients are reduce-scattered once.
 */
export function shardTraffic(l: LayoutInput): ShardTraffic {
  const parameters = layerParametersOfRank(l.model, l.tensor, expertTensorOf(l) * l.expert);
  const micro = microBatchesOf(l);
  const isSharded = l.zeroStage === 3 && shardGroupSize(l) > 1;
  const once = l.noSync ? 1 : micro;
  return {
    parameters,
    trained: l.adapters === undefined ? parameters : l.adapters / l.model.layers / l.tensor,
    gathers: isSharded ? micro + once : 0,
    referenceGathers: isSharded && l.preferences ? micro : 0,
    gatheredBytes: GATHERED_BYTES * parameters,
    scatters: isSharded ? once : 0,
    replicaSums: l.replicate > 1 ? 1 : 0,
  };
}
