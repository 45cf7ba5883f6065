import type { LayoutInput } from '../layout';
import type { LayoutPlan, PlannerConstants } from '../plan';
import { planLayout } from '../plan';

/** One change worth trying, in the run file's words, and what the planner expects of it. */
export interface Advice {
  /** `training.activationCheckpointing: full`. */
  change: string;
  why: string;
  memoryGiB: number;
  stepSeconds: number;
  tokensPerSecondPerGpu: number;
  fits: LayoutPlan['fits'];
}

interface Candidate {
  change: string;
  why: string;
  layout: Partial<LayoutInput>;
}

/** What each library calls its degrees. */
const DEGREE_NAMES: Readonly<Record<string, { tensor: string; shard: string }>> = {
  fsdp: { tensor: 'tensor_parallel_degree', shard: 'shard_degree' },
  'smp-v2': { tensor: 'tensor_parallel_degree', shard: 'hybrid_shard_degree' },
  'smp-v1': { tensor: 'tensor_parallel_degree', shard: 'sharded_data_parallel_degree' },
  megatron: { tensor: 'tensor-model-parallel-size', shard: 'use-distributed-optimizer' },
};

const parameterOf = (library: string, degree: 'tensor' | 'shard') =>
  `distribution.parameters.${DEGREE_NAMES[library]?.[degree] ?? degree}`;

/** Libraries that divide a product over GPUs. */
const hasTensorParallelism = (library: string) => library in DEGREE_NAMES;

/** Changes that make a layout smaller, the cheapest first. */
function smaller(l: LayoutInput, library: string): Candidate[] {
  const list: Candidate[] = [];
  if (l.recompute === 'none') {
    const selective = l.stack === 'fsdp' ? 'op' : 'core';
    list.push({
      change: 'training.activationCheckpointing: selective',
      why: 'keeps fewer activations',
      layout: { recompute: selective },
    });
  }
  if (l.recompute !== 'full') {
    list.push({
      change: 'training.activationCheckpointing: full',
      why: 'keeps one tensor a block',
      layout: { recompute: 'full' },
    });
  }
  if (l.microBatch > 1) {
    const microBatch = Math.floor(l.microBatch / 2);
    list.push({
      change: `training.microBatchSize: ${microBatch}`,
      why: 'halves activations and logits',
      layout: { microBatch },
    });
  }
  if (l.zeroStage === 3 && l.replicate > 1) {
    list.push({
      change: `${parameterOf(library, 'shard')}: ${l.shard * l.replicate}`,
      why: 'less state on each GPU',
      layout: { shard: l.shard * l.replicate, replicate: 1 },
    });
  }
  if (l.zeroStage < 3 && l.stack !== 'megatron') {
    list.push({
      change: 'shard parameters too (FSDP, ZeRO-3)',
      why: 'less state on each GPU',
      layout: { zeroStage: 3, shard: l.shard * l.replicate, replicate: 1 },
    });
  }
  if (l.recompute === 'full' && !l.offloadActivations) {
    list.push({
      change: 'training.activationOffload: true',
      why: 'block inputs go to host memory',
      layout: { offloadActivations: true },
    });
  }
  if (
    hasTensorParallelism(library) &&
    l.tensor < l.gpusPerNode &&
    l.shard % 2 === 0 &&
    l.model.heads % (2 * l.tensor) === 0
  ) {
    list.push({
      change: `${parameterOf(library, 'tensor')}: ${2 * l.tensor}`,
      why: 'divides activations and logits',
      layout: { tensor: 2 * l.tensor, shard: l.shard / 2 },
    });
  }
  return list;
}

/** Changes that make a layout faster while it still fits. */
function faster(l: LayoutInput, library: string): Candidate[] {
  const list: Candidate[] = [];
  const ranks = l.shard * l.replicate;
  if (l.recompute === 'full') {
    list.push({
      change: 'training.activationCheckpointing: selective',
      why: 'recomputes less',
      layout: { recompute: l.stack === 'fsdp' ? 'op' : 'core' },
    });
  }
  if (l.recompute !== 'none')
    list.push({
      change: 'training.activationCheckpointing: none',
      why: 'recomputes nothing',
      layout: { recompute: 'none' },
    });
  if (l.globalBatch % (2 * l.microBatch * ranks) === 0) {
    list.push({
      change: `training.microBatchSize: ${2 * l.microBatch}`,
      why: 'larger products, fewer gathers',
      layout: { microBatch: 2 * l.microBatch },
    });
  }
  if (l.offloadActivations)
    list.push({
      change: 'training.activationOffload: false',
      why: 'no copies to host memory',
      layout: { offloadActivations: false },
    });
  if (l.zeroStage === 3 && l.shard > l.gpusPerNode && l.shard % l.gpusPerNode === 0) {
    list.push({
      change: `${parameterOf(library, 'shard')}: ${l.gpusPerNode}`,
      why: 'gathers stay inside a node',
      layout: { shard: l.gpusPerNode, replicate: ranks / l.gpusPerNode },
    });
  }
  if (l.kernels === 'eager' && library === 'fsdp' && l.tensor === 1)
    list.push({
      change: 'distribution.parameters.compile: true',
      why: 'fewer passes over memory',
      layout: { kernels: 'compiled' },
    });
  return list;
}

/**
 * What to change first: to make it fit when it does not, else to make it at least 2 % faster; the best first, three at most.
 * @param k the constants that `plan` was made with
 */
export function adviceFor(layout: LayoutInput, plan: LayoutPlan, library: string, k: PlannerConstants): Advice[] {
  return plan.fits === 'oom' ? untilItFits(layout, plan, library, k) : whatIsFaster(layout, plan, library, k);
}

const SHOWN = 3;

function tried(layout: LayoutInput, candidates: readonly Candidate[], k: PlannerConstants): Advice[] {
  return candidates.flatMap((c): Advice[] => {
    const next = planLayout({ ...layout, ...c.layout }, k);
    return typeof next === 'string' ? [] : [adviceOf(c, next)];
  });
}

const adviceOf = (c: Candidate, next: LayoutPlan): Advice => ({
  change: c.change,
  why: c.why,
  memoryGiB: next.memoryGiB.total,
  stepSeconds: next.step.total,
  tokensPerSecondPerGpu: next.tokensPerSecondPerGpu,
  fits: next.fits,
});

function whatIsFaster(layout: LayoutInput, plan: LayoutPlan, library: string, k: PlannerConstants): Advice[] {
  return tried(layout, faster(layout, library), k)
    .filter((a) => a.fits !== 'oom' && a.stepSeconds < 0.98 * plan.step.total)
    .sort((a, b) => a.stepSeconds - b.stepSeconds)
    .slice(0, SHOWN);
}

/** Single changes that make it fit, fastest first; when none does, the most helpful changes together. */
function untilItFits(layout: LayoutInput, plan: LayoutPlan, library: string, k: PlannerConstants): Advice[] {
  const single = tried(layout, smaller(layout, library), k).filter((a) => a.fits !== 'oom');
  if (single.length > 0) return single.sort((a, b) => a.stepSeconds - b.stepSeconds).slice(0, SHOWN);
  const together = combined(layout, plan, library, k);
  return together ? [together] : [];
}

/** Changes to take together before giving up. */
const MOST_CHANGES = 6;

function combined(layout: LayoutInput, plan: LayoutPlan, library: string, k: PlannerConstants): Advice | undefined {
  const changes: Candidate[] = [];
  let current = layout;
  let reached = plan;
  while (changes.length < MOST_CHANGES && reached.fits === 'oom') {
    const [best] = smaller(current, library)
      .flatMap((candidate) => {
        const next = planLayout({ ...current, ...candidate.layout }, k);
        return typeof next === 'string' ? [] : [{ candidate, next }];
      })
      .sort((a, b) => a.next.memoryGiB.total - b.next.memoryGiB.total);
    if (!best || best.next.memoryGiB.total >= reached.memoryGiB.total) break;
    changes.push(best.candidate);
    current = { ...current, ...best.candidate.layout };
    reached = best.next;
  }
  if (changes.length === 0) return undefined;
  return adviceOf({ change: changes.map((c) => c.change).join(', '), why: 'together', layout: {} }, reached);
}
