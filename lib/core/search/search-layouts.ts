import { divisorsUpTo } from '../distribution/parameters';
import { type Gpu, gpuOf } from '../planner/gpu';
import {
  domainGpusOf,
  kernelsAt,
  type LayoutInput,
  layoutProblem,
  needsSequenceParallel,
  type Recompute,
  selectiveOf,
  tokensPerStep,
  worldSizeOf,
} from '../planner/layout';
import { memoryOf } from '../planner/memory/memory';
import { stageBlocks } from '../planner/model-size';
import { availableGiB, memoryVerdict, PLANNER_CONSTANTS } from '../planner/plan';
import { stepSeconds } from '../planner/time/step-time';

type SearchSpace = Partial<
  Record<'tensor' | 'pipeline' | 'virtualStages' | 'context' | 'expert' | 'shard' | 'microBatch', readonly number[]>
> & { recompute?: readonly Recompute[]; offloadActivations?: readonly boolean[] };

/** A layout that fits into memory, with its plan. */
export type Found = NonNullable<ReturnType<typeof judge>>;

const KEPT = 400;

/**
 * Plans all layouts of the space, on the cluster of the base. Checks memory first, because most layouts fail there. Returns the number of
 * layouts considered, including impossible ones, and the fastest that fit.
 */
export function searchLayouts(base: LayoutInput, space: SearchSpace): { considered: number; fastest: Found[] } {
  const gpu = gpuOf(base.accelerator, PLANNER_CONSTANTS.time);
  if (!gpu) return { considered: 0, fastest: [] };
  const found: Found[] = [];
  let considered = 0;
  for (const layout of layoutsOf(base, space)) {
    considered += 1;
    const one = judge(layout, gpu);
    if (one) found.push(one);
  }
  return { considered, fastest: found.sort((a, b) => a.stepSeconds - b.stepSeconds).slice(0, KEPT) };
}

/** The plan of a layout; undefined when it is impossible or out of memory. */
function judge(layout: LayoutInput, gpu: Gpu) {
  if (layoutProblem(layout) !== undefined) return undefined;
  const available = availableGiB(layout, gpu);
  const memory = memoryOf(layout, PLANNER_CONSTANTS.memory, available);
  const fits = memoryVerdict(memory, available);
  if (fits === 'oom') return undefined;
  const seconds = stepSeconds(layout, gpu, PLANNER_CONSTANTS.time).total;
  return {
    layout,
    fits,
    memoryGiB: memory.total,
    stepSeconds: seconds,
    tokensPerSecondPerGpu: tokensPerStep(layout) / seconds / worldSizeOf(layout),
  };
}

/** A layout with every combination of the values that a space has for these keys; the last key varies fastest. */
function* combinations(
  start: LayoutInput,
  space: SearchSpace,
  [key, ...others]: readonly (keyof SearchSpace)[],
): Generator<LayoutInput> {
  if (key === undefined) yield start;
  else for (const value of space[key] ?? [start[key]]) yield* combinations({ ...start, [key]: value }, space, others);
}

/** Yields every layout of the space whose degrees multiply to the world size. */
function* layoutsOf(start: LayoutInput, space: SearchSpace): Generator<LayoutInput> {
  for (const l of combinations(start, space, ['tensor', 'pipeline', 'context', 'expert'])) {
    const ranks = worldSizeOf(start) / (l.tensor * l.pipeline * l.context);
    if (!Number.isInteger(ranks)) continue;
    const sequenceParallel = start.sequenceParallel || needsSequenceParallel(l);
    yield* batchesOf({ ...l, kernels: kernelsAt(start, l.tensor), sequenceParallel }, ranks, space);
  }
}

function* batchesOf(start: LayoutInput, ranks: number, space: SearchSpace): Generator<LayoutInput> {
  const { shard = [ranks], microBatch = [start.microBatch], virtualStages = [start.virtualStages] } = space;
  const perStage = stageBlocks(start.model) / start.pipeline;
  const fitting = {
    ...space,
    shard: start.zeroStage === 0 ? [1] : shard.filter((s) => ranks % s === 0),
    microBatch: microBatch.filter((size) => start.globalBatch % (size * ranks) === 0),
    virtualStages: start.pipeline === 1 ? [1] : virtualStages.filter((v) => perStage % v === 0),
  };
  const keys = ['shard', 'microBatch', 'virtualStages', 'recompute', 'offloadActivations'] as const;
  for (const l of combinations(start, fitting, keys)) {
    // Only the inputs of recomputed blocks can be offloaded.
    if (!l.offloadActivations || l.recompute !== 'none') yield { ...l, replicate: ranks / l.shard };
  }
}

const divisors = (n: number): number[] => divisorsUpTo(n, n);

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
