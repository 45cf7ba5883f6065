import { findPrice } from '../catalog/prices/prices';
import { formatPath, type Issue } from '../config/issue';
import { totalSteps, trainingGroupsOf } from '../config/resolve-run';
import type { RunSpec, TrainingSpec } from '../config/run-spec';
import { EXPERT_TENSOR } from '../distribution/megatron';
import { expertTensorOf, type LayoutInput, needsSequenceParallel } from '../planner/layout';
import { stageBlocks } from '../planner/model-size';
import { layoutOfRun, partsOfBatch } from '../planner/run/layout-of-run';
import type { PriceFacts } from '../planner/run/plan-run';
import { type Found, searchLayouts, spaceAround } from './search-layouts';

type Parameters = Record<string, unknown>;

const expertsOf = (l: LayoutInput): Parameters => (l.model.experts > 1 ? { expert_parallel_degree: l.expert } : {});

/** The degrees of a layout as `distribution.parameters` of a library; degrees that the library cannot express are omitted. */
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

interface RunSearchOptions {
  /** Libraries to try. @default - the library of the run */
  libraries?: readonly string[];
  /** Applies the rules to a candidate as a run; candidates with errors are omitted. */
  check?: (candidate: RunSpec) => Issue[];
}

/** One layout in the terms of a run file. */
export interface Candidate extends Omit<Found, 'layout'> {
  distribution: { library: string; parameters: Record<string, unknown> };
  training: Pick<TrainingSpec, 'microBatchSize' | 'globalBatchSize' | 'activationCheckpointing' | 'activationOffload'>;
  compute: { instanceType: string; instanceCount: number };
  /** Arguments of the run that the layout does not admit. @default - those of the run */
  code?: { arguments: RunSpec['code']['arguments'] };
  /** USD for the whole run, or per thousand steps when the run has no end; null = price unknown. */
  usd: number | null;
}

/** The number of layouts considered, and the fastest valid ones, best first. */
export interface FoundAround {
  considered: number;
  candidates: Candidate[];
  /** Why the fastest layout that fits is not valid, if none is. */
  refusal?: Issue;
  /** Why a library has none of the candidates; null = none of its layouts fits. */
  without?: Record<string, Issue | null>;
}

const SHOWN = 20;
const STEPS_WITHOUT_END = 1000;

/**
 * Searches around a run: the number of layouts considered, including impossible ones, and the fastest first. On one cluster the fastest is also
 * the cheapest. With `refusal`, the rule that rejects the fastest layout when rules reject all that fit; `without` has the same for each library
 * without a layout among several. Returns issues when none of the layouts can be planned.
 */
export function searchRun(run: RunSpec, facts: PriceFacts, options: RunSearchOptions = {}): FoundAround | Issue[] {
  const problems: Issue[] = [];
  const without: NonNullable<FoundAround['without']> = {};
  const results = (options.libraries ?? [run.distribution.library]).flatMap((library) => {
    const mapped = layoutOfRun(plainRun(run, library));
    if (Array.isArray(mapped)) {
      problems.push(...mapped);
      without[library] = mapped[0] ?? null;
      return [];
    }
    const { considered, fastest } = searchLayouts(mapped.layout, spaceAround(mapped.layout));
    const candidates = fastest.map((found) => candidateOf(run, library, found, facts));
    const result = { considered, ...accepted(run, candidates, options) };
    if (result.candidates.length === 0) without[library] = result.refusal ?? null;
    return [result];
  });
  if (results.length === 0) return problems;
  const all = results.flatMap(({ candidates }) => candidates).sort((a, b) => a.stepSeconds - b.stepSeconds);
  const refusal = all.length === 0 ? results.find((result) => result.refusal)?.refusal : undefined;
  return {
    considered: results.reduce((total, { considered }) => total + considered, 0),
    candidates: all.slice(0, SHOWN),
    ...(refusal && { refusal }),
    ...(all.length > 0 && Object.keys(without).length > 0 && { without }),
  };
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

function accepted(
  run: RunSpec,
  found: readonly Candidate[],
  { check = () => [] }: RunSearchOptions,
): { candidates: Candidate[]; refusal?: Issue } {
  const candidates: Candidate[] = [];
  let refusal: Issue | undefined;
  for (const candidate of found) {
    if (candidates.length >= SHOWN) break;
    const error = check(candidateRun(run, candidate)).find(({ level }) => level === 'error');
    if (!error) candidates.push(candidate);
    refusal ??= error;
  }
  return { candidates, ...(candidates.length === 0 && refusal && { refusal }) };
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

/** What a candidate changes in the run, as `--set` takes it. */
export function candidateOverrides(run: RunSpec, candidate: Candidate): string[] {
  const { code, training, distribution } = candidateRun(run, candidate);
  const changes = (path: string[], before: object, after: object): string[] => {
    const old = new Map(Object.entries(before));
    const removed = [...old.keys()].filter((key) => !(key in after)).map((key) => [key, undefined] as const);
    return [...Object.entries(after), ...removed]
      .filter(([key, value]) => JSON.stringify(value) !== JSON.stringify(old.get(key)))
      .map(([key, value = '']) => {
        const text = typeof value === 'string' ? value : JSON.stringify(value);
        return `${formatPath([...path, key])}=${text}`;
      });
  };
  const { parameters, library, launcher } = distribution;
  const { parameters: own, ...before } = run.distribution;
  return [
    ...changes(['distribution'], before, { ...before, library, launcher }),
    ...changes(['distribution', 'parameters'], own, parameters),
    ...changes(['training'], run.training, training),
    ...changes(['code', 'arguments'], run.code.arguments, code.arguments),
  ];
}

function candidateOf(run: RunSpec, library: string, found: Found, { region, prices }: PriceFacts): Candidate {
  const { layout, ...figures } = found;
  const instanceType = trainingGroupsOf(run)[0]?.instanceType ?? '';
  const price = findPrice(instanceType, region, prices)?.usdPerHour;
  const hours = ((totalSteps(run.training) ?? STEPS_WITHOUT_END) * figures.stepSeconds) / 3600;
  return {
    distribution: { library, parameters: WRITERS[library]?.(layout) ?? {} },
    training: {
      microBatchSize: layout.microBatch * partsOfBatch(plainRun(run, library)),
      globalBatchSize: run.training.globalBatchSize ?? layout.globalBatch,
      activationCheckpointing:
        layout.recompute === 'full' || layout.recompute === 'none' ? layout.recompute : 'selective',
      activationOffload: layout.offloadActivations,
    },
    compute: { instanceType, instanceCount: layout.nodes },
    // Groups of layers are recomputed with full checkpointing only.
    ...(layout.recompute !== 'full' &&
      (layout.recomputeLayers ?? 1) > 1 && { code: { arguments: { 'recompute-layers': 1 } } }),
    ...figures,
    usd: price === undefined ? null : hours * price * (layout.nodes + run.compute.spareInstances),
  };
}
