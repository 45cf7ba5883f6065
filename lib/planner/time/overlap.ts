import type { Constants } from '../constants';
import type { LayoutInput } from '../layout';

/** What communication adds to work it runs beside: the part that sticks out, and a tax on both while they share the GPU. */
export const added = (work: number, communication: number, tax: number) =>
  Math.max(0, communication - work) + tax * Math.min(work, communication);

/** Ranks that hold the shards of one replica: data-parallel and context ranks together. */
export const shardGroupSize = (l: LayoutInput) => l.shard * l.context;

/** Bytes of a gradient that FSDP and ZeRO-3 scatter. */
export const reduceBytesOf = (l: LayoutInput, k: Constants) =>
  l.stack === 'deepspeed' || l.precision === 'bf16-pure' || l.stack === 'jax' ? 2 : k.reduceBytes;
