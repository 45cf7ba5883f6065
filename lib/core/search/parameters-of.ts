import { EXPERT_TENSOR } from '../distribution/megatron/flags';
import { expertTensorOf, type LayoutInput, needsSequenceParallel } from '../planner/layout';
import { stageBlocks } from '../planner/model-size';

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
