import { domainGpusOf, kernelsAt, type LayoutInput, selectiveOf } from '../layout';
import { type LayoutPlan, planLayout } from '../plan';
import { type Candidate, graphsOfExperts, interleavedStages, type Options } from './megatron';

/** The names of the parallel degrees in each library. */
const DEGREE_NAMES: Readonly<Record<string, { tensor: string; shard: string }>> = {
  fsdp: { tensor: 'tensor_parallel_degree', shard: 'shard_degree' },
  'smp-v2': { tensor: 'tensor_parallel_degree', shard: 'hybrid_shard_degree' },
  'smp-v1': { tensor: 'tensor_parallel_degree', shard: 'sharded_data_parallel_degree' },
  megatron: { tensor: 'tensor-model-parallel-size', shard: 'use-distributed-optimizer' },
};

const parameterOf = (library: string, degree: 'tensor' | 'shard') =>
  `distribution.parameters.${DEGREE_NAMES[library]?.[degree] ?? degree}`;

const hasTensorParallelism = (library: string) => library in DEGREE_NAMES;

/** A change to a layout that may be worth trying; undefined when it changes nothing or is not possible. */
type Change = (l: LayoutInput, library: string) => Candidate | undefined;

const recompute = (mode: 'none' | 'selective' | 'full', why: string, l: LayoutInput): Candidate => {
  // Groups of layers are recomputed with full checkpointing only.
  const alone = mode !== 'full' && (l.recomputeLayers ?? 1) > 1;
  return {
    change: {
      'training.activationCheckpointing': mode,
      ...(alone && { 'code.arguments.recompute-layers': 1 }),
    },
    why,
    layout: { recompute: mode === 'selective' ? selectiveOf(l) : mode, ...(alone && { recomputeLayers: 1 }) },
  };
};

const candidate = (isPossible: boolean | undefined, change: Candidate): Candidate | undefined =>
  isPossible ? change : undefined;

const shardEverywhere = (l: LayoutInput) => ({ shard: l.shard * l.replicate, replicate: 1 });

/** Changes that reduce the memory of a layout, cheapest first. */
const SMALLER: readonly Change[] = [
  (l) =>
    candidate(l.keepsGathered, {
      change: { 'distribution.parameters.reshard_after_forward': true },
      why: 'keeps no gathered parameters',
      layout: { keepsGathered: false },
    }),
  (l) => (l.recompute === 'none' ? recompute('selective', 'keeps fewer activations', l) : undefined),
  (l) => (l.recompute !== 'full' ? recompute('full', 'keeps one tensor a block', l) : undefined),
  (l) => {
    const microBatch = Math.floor(l.microBatch / 2);
    const why = 'halves activations and logits';
    return l.microBatch > 1
      ? { change: { 'training.microBatchSize': microBatch }, why, layout: { microBatch } }
      : undefined;
  },
  (l, library) =>
    candidate(l.zeroStage === 3 && l.replicate > 1, {
      change: { [parameterOf(library, 'shard')]: l.shard * l.replicate },
      why: 'less state on each GPU',
      layout: shardEverywhere(l),
    }),
  (l) =>
    candidate(l.zeroStage < 3 && l.stack !== 'megatron', {
      change: { 'shard parameters too (FSDP, ZeRO-3)': '' },
      why: 'less state on each GPU',
      layout: { zeroStage: 3, ...shardEverywhere(l) },
    }),
  (l) =>
    candidate(l.recompute === 'full' && !l.offloadActivations, {
      change: { 'training.activationOffload': true },
      why: 'block inputs go to host memory',
      layout: { offloadActivations: true },
    }),
  (l, library) => (l.expert < domainGpusOf(l) ? spreadWithin(l, library) : undefined),
  (l, library) =>
    candidate(hasTensorParallelism(library) && canDivideOnce(l), {
      change: dividedOnce(l, library),
      why: 'divides activations and logits',
      layout: { tensor: 2 * l.tensor, shard: l.shard / 2, kernels: kernelsAt(l, 2 * l.tensor) },
    }),
];

/** The expert-parallel degree that keeps the exchanges within one NVLink domain; undefined when the current one already does. */
function expertsWithinDomain(l: LayoutInput): number | undefined {
  const within = Math.min(domainGpusOf(l), l.model.experts);
  const hasDegree = l.model.experts % within === 0 && !l.preferences && l.tensor === 1;
  return hasDegree && within !== l.expert ? within : undefined;
}

/**
 * Whether twice the tensor-parallel degree divides the heads and stays within one NVLink domain. Not with expert groups: FSDP rejects both
 * together, and Megatron needs more flags.
 */
const canDivideOnce = (l: LayoutInput): boolean =>
  l.expert === 1 &&
  !compiles(l) &&
  l.tensor < domainGpusOf(l) &&
  l.shard % 2 === 0 &&
  l.model.heads % (2 * l.tensor) === 0;

/** `compile: true`, which the built-in trainer rejects together with tensor parallelism. */
const compiles = (l: LayoutInput): boolean =>
  l.isOwnTrainer === true && l.kernels === 'compiled' && !l.compilesUnlessTensor;

/** FSDP's degrees multiply to the world size, so doubling one halves the other; other libraries count differently. */
function dividedOnce(l: LayoutInput, library: string): Options {
  const tensor = { [parameterOf(library, 'tensor')]: 2 * l.tensor };
  return library === 'fsdp' ? { ...tensor, [parameterOf(library, 'shard')]: l.shard / 2 } : tensor;
}

/** Applies to FSDP's own degree; SMP v2 counts these ranks among the shards, which would change as well. */
const spreadWithin: Change = (l, library) => {
  const expert = library === 'fsdp' ? expertsWithinDomain(l) : undefined;
  if (expert === undefined) return undefined;
  const why = l.domainNodes ? 'experts stay inside an UltraServer' : 'experts stay inside a node';
  return { change: { 'distribution.parameters.expert_parallel_degree': expert }, why, layout: { expert } };
};

const FASTER: readonly Change[] = [
  spreadWithin,
  interleavedStages,
  graphsOfExperts,
  (l) => (l.recompute === 'full' ? recompute('selective', 'recomputes less', l) : undefined),
  (l) => (l.recompute !== 'none' ? recompute('none', 'recomputes nothing', l) : undefined),
  (l) =>
    candidate(l.globalBatch % (2 * l.microBatch * l.shard * l.replicate) === 0, {
      change: { 'training.microBatchSize': 2 * l.microBatch },
      why: 'larger products, fewer gathers',
      layout: { microBatch: 2 * l.microBatch },
    }),
  (l) =>
    candidate(l.offloadActivations, {
      change: { 'training.activationOffload': false },
      why: 'no copies to host memory',
      layout: { offloadActivations: false },
    }),
  (l, library) =>
    candidate(l.zeroStage === 3 && l.shard > domainGpusOf(l) && l.shard % domainGpusOf(l) === 0, {
      change: { [parameterOf(library, 'shard')]: domainGpusOf(l) },
      why: l.domainNodes ? 'gathers stay inside an UltraServer' : 'gathers stay inside a node',
      layout: { shard: domainGpusOf(l), replicate: (l.shard * l.replicate) / domainGpusOf(l) },
    }),
  (l, library) =>
    candidate(l.kernels === 'eager' && library === 'fsdp' && l.tensor === 1, {
      change: { 'distribution.parameters.compile': true },
      why: 'fewer passes over memory',
      layout: { kernels: 'compiled' },
    }),
];

const candidatesOf = (changes: readonly Change[], l: LayoutInput, library: string): Candidate[] =>
  changes.flatMap((change) => change(l, library) ?? []);

/** What to change first: to make it fit if it does not, otherwise to make it at least 2 % faster; the best first, three at most. */
export function adviceFor(layout: LayoutInput, plan: LayoutPlan, library: string): Advice[] {
  return plan.fits === 'oom' ? untilItFits(layout, plan, library) : whatIsFaster(layout, plan, library);
}

const SHOWN = 3;

function whatIsFaster(layout: LayoutInput, plan: LayoutPlan, library: string): Advice[] {
  return changedOnce(unchanged(layout, plan), candidatesOf(FASTER, layout, library))
    .filter((one) => one.plan.fits !== 'oom' && one.plan.step.total < 0.98 * plan.step.total)
    .sort(byTime)
    .slice(0, SHOWN)
    .map(adviceOf);
}

/** The fewest changes that make it fit, fastest first; if none do, those that come closest. */
function untilItFits(layout: LayoutInput, plan: LayoutPlan, library: string): Advice[] {
  let smallest = unchanged(layout, plan);
  let reached = [smallest];
  for (let changes = 1; changes <= MAX_CHANGES && reached.length > 0; changes++) {
    const smaller = (from: Changed) => changedOnce(from, candidatesOf(SMALLER, from.layout, library));
    const next = distinct(reached.flatMap(smaller)).sort(byMemory);
    const fitting = next.filter((one) => one.plan.fits !== 'oom');
    if (fitting.length > 0) return fitting.sort(byTime).slice(0, SHOWN).map(adviceOf);
    const [least] = next;
    if (least && byMemory(least, smallest) < 0) smallest = least;
    reached = next.slice(0, MAX_REACHED);
  }
  return smallest.plan === plan ? [] : [adviceOf(smallest)];
}

const MAX_CHANGES = 6;
/** Number of layouts that are changed further, those with the least memory. */
const MAX_REACHED = 24;

interface Changed {
  layout: LayoutInput;
  plan: LayoutPlan;
  /** Each option once, with its final value. */
  change: Options;
  why: string;
}

const byMemory = (a: Changed, b: Changed): number => a.plan.memoryGiB.total - b.plan.memoryGiB.total;
const byTime = (a: Changed, b: Changed): number => a.plan.step.total - b.plan.step.total;

const unchanged = (layout: LayoutInput, plan: LayoutPlan): Changed => ({ layout, plan, change: {}, why: '' });

function changedOnce(from: Changed, candidates: readonly Candidate[]): Changed[] {
  return candidates.flatMap(({ change, why, layout }): Changed[] => {
    const next = { ...from.layout, ...layout };
    const plan = planLayout(next);
    if (typeof plan === 'string') return [];
    return [{ layout: next, plan, change: { ...from.change, ...change }, why: from.why ? 'together' : why }];
  });
}

/** Layouts that differ only in the order of their changes are the same. */
function distinct(all: readonly Changed[]): Changed[] {
  const keyOf = ({ change }: Changed) => textOf(Object.fromEntries(Object.entries(change).sort()));
  return [...new Map(all.map((one) => [keyOf(one), one])).values()];
}

/**
 * A change that is worth trying, in the terms of the run file (`training.activationCheckpointing: full`; options that change together are
 * separated by commas), and its predicted effect.
 */
export type Advice = ReturnType<typeof adviceOf>;

const adviceOf = ({ change, why, plan }: Changed) => ({
  change: textOf(change),
  why,
  memoryGiB: plan.memoryGiB.total,
  stepSeconds: plan.step.total,
  tokensPerSecondPerGpu: plan.tokensPerSecondPerGpu,
  fits: plan.fits,
});

const textOf = (options: Options): string =>
  Object.entries(options)
    .map(([option, value]) => (value === '' ? option : `${option}: ${value}`))
    .join(', ');
