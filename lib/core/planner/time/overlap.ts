import type { Constants } from '../constants';
import type { LayoutInput } from '../layout';

/** Time that communication adds to the work that it overlaps with: the exposed part, and a slowdown of both while they share the GPU. */
export const added = (work: number, communication: number, tax: number) =>
  Math.max(0, communication - work) + tax * Math.min(work, communication);

/** Number of ranks that hold the shards of one replica: data-parallel and context ranks together. */
export const shardGroupSize = (l: LayoutInput) => l.shard * l.context;

/** Bytes per gradient that FSDP and ZeRO-3 reduce-scatter; the built-in trainer sums in fp32 under FSDP. */
export function reduceBytesOf(l: LayoutInput, k: Constants): number {
  if (l.stack === 'deepspeed' || l.precision === 'bf16-pure' || l.stack === 'jax') return 2;
  return l.isOwnTrainer ? 4 : k.reduceBytes;
}
