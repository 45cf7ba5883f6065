import type { LayoutInput } from '../planner/layout';
import { domainGpusOf, selectiveOf, worldSizeOf } from '../planner/layout';
import { stageBlocks } from '../planner/model-size';
import type { SearchSpace } from './search-layouts';

const divisors = (n: number): number[] => {
  const list: number[] = [];
  for (let d = 1; d <= n; d++) if (n % d === 0) list.push(d);
  return list;
};

/** Common batch sizes: powers of two, and three times a power of two, up to `limit`. */
const handyNumbers = (limit: number): number[] =>
  Array.from({ length: limit }, (_, i) => i + 1).filter((n) =>
    [1, 3].some((f) => n % f === 0 && Math.log2(n / f) % 1 === 0),
  );

const LARGEST_MICRO_BATCH = 64;
const LARGEST_PIPELINE = 64;
const LARGEST_CONTEXT = 16;

/** The search space around a layout within its library: degrees that divide the model and the cluster, batch sizes, recompute, offload. */
export function spaceAround(base: LayoutInput): SearchSpace {
  const world = worldSizeOf(base);
  const megatron = base.stack === 'megatron' || base.stack === 'megatron-legacy' || base.stack === 'nanotron';
  const divides = divisors(world);
  // The reference model of preference training is not sharded over tensor or context ranks, and matrices in 4 bits not over tensor ranks.
  const tensorAllowed = base.stack !== 'deepspeed' && !base.preferences && !base.quantized;
  return {
    tensor: tensorAllowed ? divides.filter((t) => t <= domainGpusOf(base) && base.model.heads % t === 0) : [1],
    pipeline: megatron ? divides.filter((p) => p <= LARGEST_PIPELINE && stageBlocks(base.model) % p === 0) : [1],
    virtualStages: megatron ? divisors(stageBlocks(base.model)).filter((v) => v <= 12) : [1],
    context:
      (base.stack === 'fsdp' || base.stack === 'megatron') && !base.preferences
        ? divides.filter((c) => c <= LARGEST_CONTEXT && base.sequence % c === 0)
        : [1],
    expert: expertDegrees(base),
    // Megatron and ZeRO always shard over all data-parallel ranks; only FSDP has a shard degree.
    ...(base.stack === 'fsdp' && base.zeroStage === 3 ? { shard: divides } : {}),
    microBatch: handyNumbers(LARGEST_MICRO_BATCH),
    recompute: ['none', selectiveOf(base), 'full'],
    offloadActivations: [false, true],
  };
}

/** Expert-parallel degrees: FSDP, SMP v2 and Megatron have one; preference training and other libraries keep the run's value. */
function expertDegrees(base: LayoutInput): number[] {
  if (!(base.stack === 'fsdp' || base.stack === 'megatron') || base.preferences || base.model.experts <= 1)
    return [base.expert];
  const within = divisors(worldSizeOf(base)).filter((degree) => base.model.experts % degree === 0);
  return within.filter((degree) => Math.log2(degree) % 1 === 0 || degree === base.expert);
}
