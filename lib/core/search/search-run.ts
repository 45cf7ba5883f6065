import { findInstanceType } from '../catalog/instances/instances';
import { findPrice } from '../catalog/prices/prices';
import { hasErrors, type Issue } from '../config/issue';
import { instanceGroupsOf, totalSteps } from '../config/resolve-run';
import type { RunSpec, TrainingSpec } from '../config/run-spec';
import { EXPERT_TENSOR } from '../distribution/megatron/rules';
import { domainNodesOf } from '../distribution/ultra-servers';
import { expertTensorOf, type LayoutInput, needsSequenceParallel } from '../planner/layout';
import { stageBlocks } from '../planner/model-size';
import type { Fits } from '../planner/plan';
import { layoutOfRun, partsOfBatch } from '../planner/run/layout-of-run';
import { constantsAfter, efficiencyFor, type PlanFacts } from '../planner/run/plan-run';
import {
  type ClusterChoice,
  type Found,
  type SearchLimits,
  type SearchResult,
  searchLayouts,
  spaceAround,
} from './search-layouts';

type Parameters = Record<string, unknown>;

/** The expert degree of a model with experts; empty for a dense model. */
const expertsOf = (l: LayoutInput): Parameters => (l.model.experts > 1 ? { expert_parallel_degree: l.expert } : {});

const WRITERS: Readonly<Record<string, (l: LayoutInput) => Parameters>> = {
  fsdp: (l) => ({
    shard_degree: l.shard,
    replicate_degree: l.replicate,
    tensor_parallel_degree: l.tensor,
    context_parallel_degree: l.context,
    ...expertsOf(l),
  }),
  // SMP v2 includes the context ranks in the shard degree, and excludes the expert ranks.
  'smp-v2': (l) => ({
    hybrid_shard_degree: (l.shard * l.context) / l.expert,
    tensor_parallel_degree: l.tensor,
    context_parallel_degree: l.context,
    ...expertsOf(l),
  }),
  'smp-v1': (l) => ({
    pipeline_parallel_degree: l.pipeline,
    tensor_parallel_degree: l.tensor,
    ...(l.zeroStage === 3 && { sharded_data_parallel_degree: l.shard }),
  }),
  megatron: (l) => ({
    'tensor-model-parallel-size': l.tensor,
    'pipeline-model-parallel-size': l.pipeline,
    'context-parallel-size': l.context,
    ...(l.model.experts > 1 && { 'expert-model-parallel-size': l.expert, [EXPERT_TENSOR]: expertTensorOf(l) }),
    ...(needsSequenceParallel(l) && { 'sequence-parallel': true }),
    ...(l.pipeline > 1 &&
      l.virtualStages > 1 && {
        'num-layers-per-virtual-pipeline-stage': stageBlocks(l.model) / l.pipeline / l.virtualStages,
      }),
  }),
};

/** The degrees of a layout as `distribution.parameters` of a library; degrees that the library cannot express are omitted. */
export const parametersOf = (library: string, layout: LayoutInput): Parameters => WRITERS[library]?.(layout) ?? {};

/** Options for the search around a run file. */
interface RunSearchOptions {
  /** Libraries to try. @default - the library of the run */
  libraries?: readonly string[];
  /** Clusters to try. @default - the cluster of the run */
  clusters?: readonly { instanceType: string; instanceCount: number }[];
  maxHours?: number;
  maxUsd?: number;
  /** Number of instances of a type within the quota; undefined = not known, no limit. */
  quotaOf?: (instanceType: string) => number | undefined;
  /** Applies the rules to a candidate as a run; candidates with errors are omitted. */
  check?: (candidate: RunSpec) => Issue[];
}

/** One layout in the terms of a run file. */
export interface Candidate {
  distribution: { library: string; parameters: Record<string, unknown> };
  training: Pick<TrainingSpec, 'microBatchSize' | 'globalBatchSize' | 'activationCheckpointing' | 'activationOffload'>;
  compute: { instanceType: string; instanceCount: number };
  /** Arguments of the run that the layout does not admit. @default - those of the run */
  code?: { arguments: RunSpec['code']['arguments'] };
  fits: Fits;
  memoryGiB: number;
  stepSeconds: number;
  tokensPerSecondPerGpu: number;
  /** USD for the whole run, or per thousand steps when the run has no end; null = price unknown. */
  usd: number | null;
}

/** Layouts for a run file, best first. */
interface RunSearchResult {
  considered: number;
  refused: number;
  outOfMemory: number;
  /** Fastest first. */
  candidates: Candidate[];
  /** Cheapest first. */
  byCost: Candidate[];
  /** Candidates for which no other candidate is both faster and cheaper. */
  pareto: Candidate[];
}

const SHOWN = 20;
/** Maximum number of candidates per order to which the rules are applied. */
const CHECKED = 400;
const STEPS_WITHOUT_END = 1000;

/** Searches around a run; returns issues when none of its layouts can be planned. */
export function searchRun(run: RunSpec, facts: PlanFacts, options: RunSearchOptions = {}): RunSearchResult | Issue[] {
  const results: { library: string; result: SearchResult }[] = [];
  const problems: Issue[] = [];
  for (const library of options.libraries ?? [run.distribution.library]) {
    const mapped = layoutOfRun(plainRun(run, library));
    if (Array.isArray(mapped)) problems.push(...mapped);
    else results.push({ library, result: searchOne({ run, facts, options, library, base: mapped.layout }) });
  }
  if (results.length === 0) return problems;
  return merge({ run, facts, options }, results);
}

/** With another library, the run keeps none of its parameters; the search sets every degree. */
function plainRun(run: RunSpec, library: string): RunSpec {
  const own = library === run.distribution.library;
  const zero3 = library === 'deepspeed' ? { zero_optimization: { stage: 3 } } : {};
  const optimizer = library === 'megatron' ? { 'use-distributed-optimizer': true, 'sequence-parallel': true } : {};
  const parameters = own ? run.distribution.parameters : { ...zero3, ...optimizer };
  return {
    ...run,
    distribution: { ...run.distribution, library, launcher: own ? run.distribution.launcher : 'torchrun', parameters },
  };
}

interface SearchQuestion {
  run: RunSpec;
  facts: PlanFacts;
  options: RunSearchOptions;
}

/** The clusters to try within their quotas: those of the options, or that of the run file. */
function clusterChoices({ run, facts, options }: SearchQuestion): ClusterChoice[] {
  const clusters = options.clusters ?? instanceGroupsOf(run.compute).slice(0, 1);
  return clusters.flatMap(({ instanceType, instanceCount }): ClusterChoice[] => {
    const type = findInstanceType(instanceType);
    const quota = options.quotaOf?.(instanceType);
    if (type?.accelerator?.kind !== 'gpu' || (quota !== undefined && instanceCount > quota)) return [];
    const price = findPrice(instanceType, facts.region, facts.prices)?.usdPerHour;
    return [
      {
        name: `${instanceCount} ${instanceType}`,
        cluster: {
          accelerator: type.accelerator,
          nodes: instanceCount,
          gpusPerNode: type.accelerator.count,
          networkGbps: type.networkGbps ?? 25,
          domainNodes: domainNodesOf(instanceType, instanceCount, run.compute.placement),
        },
        usdPerHour: price === undefined ? undefined : price * (instanceCount + run.compute.spareInstances),
      },
    ];
  });
}

function searchOne(question: SearchQuestion & { library: string; base: LayoutInput }): SearchResult {
  const { run, facts, options, library, base } = question;
  const { maxHours, maxUsd } = options;
  const limits: SearchLimits = { steps: totalSteps(run.training), maxHours, maxUsd, keep: CHECKED };
  const constants = constantsAfter(facts.calibration, library);
  // The degrees to try depend on the cluster.
  const parts = clusterChoices(question).map((choice) => {
    const there = { ...base, ...choice.cluster };
    return searchLayouts(there, { ...spaceAround(there), clusters: [choice] }, limits, constants);
  });
  return {
    considered: sum(parts, (p) => p.considered),
    refused: sum(parts, (p) => p.refused),
    outOfMemory: sum(parts, (p) => p.outOfMemory),
    byTime: parts.flatMap((p) => p.byTime),
    byCost: parts.flatMap((p) => p.byCost),
    pareto: parts.flatMap((p) => p.pareto),
  };
}

const sum = <T>(items: readonly T[], of: (item: T) => number) => items.reduce((total, item) => total + of(item), 0);

function merge(
  { run, facts, options }: SearchQuestion,
  results: readonly { library: string; result: SearchResult }[],
): RunSearchResult {
  const steps = totalSteps(run.training) ?? STEPS_WITHOUT_END;
  const all = (pick: (r: SearchResult) => readonly Found[]) =>
    results.flatMap(({ library, result }) =>
      pick(result).map((found) => candidateOf(run, library, measuredLike(found, library, facts), steps)),
    );
  const cost = (c: Candidate) => c.usd ?? Number.POSITIVE_INFINITY;
  const fastest = all((r) => r.byTime).sort((a, b) => a.stepSeconds - b.stepSeconds);
  const cheapest = all((r) => r.byCost).sort((a, b) => cost(a) - cost(b));
  const pareto = accepted(
    run,
    all((r) => r.pareto),
    options,
  ).sort((a, b) => a.stepSeconds - b.stepSeconds);
  let best = Number.POSITIVE_INFINITY;
  return {
    considered: sum(results, (r) => r.result.considered),
    refused: sum(results, (r) => r.result.refused),
    outOfMemory: sum(results, (r) => r.result.outOfMemory),
    candidates: accepted(run, fastest, options),
    byCost: accepted(run, cheapest, options),
    pareto: pareto.filter((c) => {
      const better = cost(c) < best;
      if (better) best = cost(c);
      return better;
    }),
  };
}

/** The first candidates without rule errors. */
function accepted(run: RunSpec, candidates: readonly Candidate[], options: RunSearchOptions): Candidate[] {
  const kept: Candidate[] = [];
  for (const candidate of candidates) {
    if (kept.length >= SHOWN) break;
    if (!options.check || !hasErrors(options.check(candidateRun(run, candidate)))) kept.push(candidate);
  }
  return kept;
}

/** The run that a candidate describes. */
export function candidateRun(run: RunSpec, candidate: Candidate): RunSpec {
  const { library, parameters } = candidate.distribution;
  const plain = plainRun(run, library);
  return {
    ...plain,
    code: { ...run.code, arguments: { ...run.code.arguments, ...candidate.code?.arguments } },
    training: { ...run.training, ...candidate.training },
    compute: { ...run.compute, ...candidate.compute, instanceGroups: [], alternatives: [] },
    distribution: {
      ...plain.distribution,
      parameters: { ...plain.distribution.parameters, ...parameters },
      instanceGroups: [],
    },
  };
}

/** Applies the measured speed of earlier runs with this accelerator and library, as in the plan of a run. */
function measuredLike(found: Found, library: string, { calibration }: PlanFacts): Found {
  const speed = efficiencyFor(calibration, found.layout, library)?.speed ?? 1;
  return {
    ...found,
    stepSeconds: found.stepSeconds / speed,
    tokensPerSecondPerGpu: found.tokensPerSecondPerGpu * speed,
    usdPerStep: found.usdPerStep === null ? null : found.usdPerStep / speed,
  };
}

function candidateOf(run: RunSpec, library: string, found: Found, steps: number): Candidate {
  const { layout } = found;
  const [count = '1', instanceType = ''] = found.cluster.split(' ');
  return {
    distribution: { library, parameters: parametersOf(library, layout) },
    training: {
      microBatchSize: layout.microBatch * partsOfBatch(plainRun(run, library)),
      globalBatchSize: run.training.globalBatchSize ?? layout.globalBatch,
      activationCheckpointing:
        layout.recompute === 'full' || layout.recompute === 'none' ? layout.recompute : 'selective',
      activationOffload: layout.offloadActivations,
    },
    compute: { instanceType, instanceCount: Number(count) },
    // Groups of layers are recomputed with full checkpointing only.
    ...(layout.recompute !== 'full' &&
      (layout.recomputeLayers ?? 1) > 1 && { code: { arguments: { 'recompute-layers': 1 } } }),
    fits: found.fits,
    memoryGiB: found.memoryGiB,
    stepSeconds: found.stepSeconds,
    tokensPerSecondPerGpu: found.tokensPerSecondPerGpu,
    usd: found.usdPerStep === null ? null : found.usdPerStep * steps,
  };
}
