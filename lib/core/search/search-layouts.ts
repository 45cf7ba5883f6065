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
import { stageBlocks } from '../planner/model-size';
import {
  availableGiB,
  type Fits,
  memoryVerdict,
  PLANNER_CONSTANTS,
  type PlannerConstants,
  wantedMemory,
  withinReach,
} from '../planner/plan';
import { plainStepSeconds, stepSeconds } from '../planner/time/step-time';

/** The values to vary around a base layout; omitted lists keep the base's value. */
interface SearchSpace {
  /** Clusters to try: hardware, size and price. @default - the cluster of the base */
  clusters?: readonly ClusterChoice[];
  tensor?: readonly number[];
  pipeline?: readonly number[];
  virtualStages?: readonly number[];
  context?: readonly number[];
  /** Numbers of ranks over which the experts of a layer are distributed. */
  expert?: readonly number[];
  /** Shard degrees; the remaining ranks are replicas. */
  shard?: readonly number[];
  microBatch?: readonly number[];
  recompute?: readonly Recompute[];
  offloadActivations?: readonly boolean[];
}

/** A cluster that the search may use. */
export interface ClusterChoice {
  name: string;
  cluster: Pick<LayoutInput, 'accelerator' | 'nodes' | 'gpusPerNode' | 'networkGbps' | 'domainNodes'>;
  /** USD per hour for the whole cluster; undefined = unknown. */
  usdPerHour?: number;
}

/** Limits of the search. */
export interface SearchLimits {
  /** Rules of a library as a predicate: undefined = allowed, otherwise the reason. Rejected layouts are counted but not planned. */
  refuses?: (layout: LayoutInput) => string | undefined;
  /** Steps of the whole run; the limits on hours and cost are only checked if it is set. */
  steps?: number;
  maxHours?: number;
  maxUsd?: number;
  /** Maximum number of nodes within the quota. */
  maxNodes?: number;
  /** Number of layouts to return per order. @default 20 */
  keep?: number;
}

/** A layout that fits into memory, with its plan. */
export interface Found {
  layout: LayoutInput;
  cluster: string;
  fits: Fits;
  memoryGiB: number;
  stepSeconds: number;
  tokensPerSecondPerGpu: number;
  /** USD per step; null = price unknown. */
  usdPerStep: number | null;
}

/** Search results and counts. */
export interface SearchResult {
  /** Number of layouts considered, including impossible and rejected ones. */
  considered: number;
  refused: number;
  outOfMemory: number;
  /** Layouts that fit, fastest first, at most `limits.keep`. */
  byTime: Found[];
  /** Layouts that fit and have a known price, cheapest first. */
  byCost: Found[];
  /** Layouts for which no other layout is both faster and cheaper. */
  pareto: Found[];
}

const KEPT = 20;

/** Plans all layouts of the space. Checks memory first, because most layouts fail there. */
export function searchLayouts(
  base: LayoutInput,
  space: SearchSpace,
  limits: SearchLimits = {},
  k: PlannerConstants = PLANNER_CONSTANTS,
): SearchResult {
  const found: Found[] = [];
  const counts = { considered: 0, refused: 0, outOfMemory: 0 };
  const own: ClusterChoice = { name: 'base', cluster: base };
  for (const choice of space.clusters ?? [own]) {
    const { accelerator, nodes, gpusPerNode, networkGbps, domainNodes } = choice.cluster;
    if (limits.maxNodes !== undefined && nodes > limits.maxNodes) continue;
    const gpu = gpuOf(accelerator, k.time);
    if (!gpu) continue;
    const start = { ...base, accelerator, nodes, gpusPerNode, networkGbps, domainNodes };
    for (const layout of layoutsOf(start, space)) {
      counts.considered += 1;
      const one = judge(layout, { ...choice, gpu }, limits, k);
      if (one === 'refused') counts.refused += 1;
      else if (one === 'oom') counts.outOfMemory += 1;
      else if (one) found.push(one);
    }
  }
  return { ...counts, ...ordered(found, limits.keep ?? KEPT, k) };
}

const costOf = (f: Found) => f.usdPerStep ?? Number.POSITIVE_INFINITY;

/** The best layouts per order, with the step time that a plan would show. */
function ordered(
  found: readonly Found[],
  keep: number,
  k: PlannerConstants,
): Pick<SearchResult, 'byTime' | 'byCost' | 'pareto'> {
  const priced = found.filter((f) => f.usdPerStep !== null);
  const refine = (list: readonly Found[]) => list.map((f) => refined(f, k));
  const bySeconds = (a: Found, b: Found) => a.stepSeconds - b.stepSeconds;
  const byDollars = (a: Found, b: Found) => costOf(a) - costOf(b);
  return {
    byTime: refine([...found].sort(bySeconds).slice(0, keep)).sort(bySeconds),
    byCost: refine([...priced].sort(byDollars).slice(0, keep)).sort(byDollars),
    pareto: paretoFront(refine(paretoFront(priced, (f) => f.stepSeconds, costOf)), (f) => f.stepSeconds, costOf),
  };
}

function refined(found: Found, k: PlannerConstants): Found {
  const gpu = gpuOf(found.layout.accelerator, k.time);
  if (!gpu) return found;
  const seconds = stepSeconds(found.layout, gpu, k.time).total;
  const faster = found.stepSeconds / seconds;
  return {
    ...found,
    stepSeconds: seconds,
    tokensPerSecondPerGpu: found.tokensPerSecondPerGpu * faster,
    usdPerStep: found.usdPerStep === null ? null : found.usdPerStep / faster,
  };
}

/** Evaluates one layout: rejected, out of memory, beyond a limit (undefined), or found. */
function judge(
  layout: LayoutInput,
  { gpu, name, usdPerHour }: ClusterChoice & { gpu: Gpu },
  limits: SearchLimits,
  k: PlannerConstants,
): Found | 'refused' | 'oom' | undefined {
  if (layoutProblem(layout) !== undefined || limits.refuses?.(layout) !== undefined) return 'refused';
  const available = availableGiB(layout, gpu);
  const wanted = wantedMemory(layout, k);
  const fits = memoryVerdict(wanted, available);
  if (fits === 'oom') return 'oom';
  const seconds = plainStepSeconds(layout, gpu, k.time).total;
  const usdPerStep = usdPerHour === undefined ? null : (usdPerHour * seconds) / 3600;
  if (breaksLimit(seconds, usdPerStep, limits)) return undefined;
  return {
    layout,
    cluster: name,
    fits,
    memoryGiB: withinReach(wanted, available).total,
    stepSeconds: seconds,
    tokensPerSecondPerGpu: tokensPerStep(layout) / seconds / worldSizeOf(layout),
    usdPerStep,
  };
}

function breaksLimit(seconds: number, usdPerStep: number | null, limits: SearchLimits): boolean {
  if (limits.steps === undefined) return false;
  if (limits.maxHours !== undefined && (limits.steps * seconds) / 3600 > limits.maxHours) return true;
  return limits.maxUsd !== undefined && (usdPerStep === null || limits.steps * usdPerStep > limits.maxUsd);
}

/** Yields every layout of the space whose degrees multiply to the world size. */
function* layoutsOf(start: LayoutInput, space: SearchSpace): Generator<LayoutInput> {
  const world = worldSizeOf(start);
  for (const tensor of space.tensor ?? [start.tensor]) {
    for (const pipeline of space.pipeline ?? [start.pipeline]) {
      for (const context of space.context ?? [start.context]) {
        const ranks = world / (tensor * pipeline * context);
        if (!Number.isInteger(ranks)) continue;
        const kernels = kernelsAt(start, tensor);
        for (const expert of space.expert ?? [start.expert]) {
          const sequenceParallel = start.sequenceParallel || needsSequenceParallel({ ...start, tensor, expert });
          yield* batchesOf({ ...start, tensor, pipeline, context, expert, kernels, sequenceParallel }, ranks, space);
        }
      }
    }
  }
}

function* batchesOf(start: LayoutInput, ranks: number, space: SearchSpace): Generator<LayoutInput> {
  const shards = start.zeroStage === 0 ? [1] : (space.shard ?? [ranks]).filter((s) => ranks % s === 0);
  const stages =
    start.pipeline === 1
      ? [1]
      : (space.virtualStages ?? [start.virtualStages]).filter(
          (v) => (stageBlocks(start.model) / start.pipeline) % v === 0,
        );
  for (const shard of shards) {
    for (const microBatch of space.microBatch ?? [start.microBatch]) {
      if (start.globalBatch % (microBatch * ranks) !== 0) continue;
      for (const virtualStages of stages) {
        for (const recompute of space.recompute ?? [start.recompute]) {
          for (const offloadActivations of space.offloadActivations ?? [start.offloadActivations]) {
            // Only the inputs of recomputed blocks can be offloaded.
            if (offloadActivations && recompute === 'none') continue;
            yield {
              ...start,
              shard,
              replicate: ranks / shard,
              microBatch,
              virtualStages,
              recompute,
              offloadActivations,
            };
          }
        }
      }
    }
  }
}

/** The items that no other item beats in both values, sorted by the first value; of equal items the first is kept. */
export function paretoFront<T>(items: readonly T[], first: (item: T) => number, second: (item: T) => number): T[] {
  const ordered = [...items].sort((a, b) => first(a) - first(b) || second(a) - second(b));
  const front: T[] = [];
  let best = Number.POSITIVE_INFINITY;
  for (const item of ordered) {
    if (second(item) >= best) continue;
    front.push(item);
    best = second(item);
  }
  return front;
}

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
