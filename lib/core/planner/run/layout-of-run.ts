import { type Accelerator, findInstanceType } from '../../catalog/instances/instances';
import { adapterParameters, layersOfBlocks } from '../../catalog/model/linear-layers';
import { kindsOfBlocks, type ParameterShape, parameterShape } from '../../catalog/model/parameters';
import { type Issue, issue } from '../../config/issue';
import { hostCount, trainingGroupsOf, worldSize } from '../../config/resolve-run';
import type { RunSpec } from '../../config/run-spec';
import { deepspeedConfig, section } from '../../distribution/deepspeed';
import { compilesByDefault, fsdpCompiles, usesFsdp1 } from '../../distribution/fsdp';
import { findStrategy } from '../../distribution/index';
import { flag } from '../../distribution/megatron';
import { degree, type ParallelLayout } from '../../distribution/strategy';
import { hostsOfDomain } from '../../distribution/ultra-servers';
import { type Kernels, type LayoutInput, type PlanPrecision, type Stack, selectiveOf } from '../layout';
import { lowPrecisionOf } from '../time/compute';
import { assumptionsOf } from './assumptions';
import { ofMegatron, trainedModel, virtualStagesOf } from './megatron';
import { changesScores, keepsScores, masksDocuments, SMP_V2, STACKS, type StackTraits } from './software';

/** A run's layout, and the values that the planner assumed because the run does not give them; shown with the plan. */
export interface RunLayout {
  layout: LayoutInput;
  assumptions: string[];
}

const problem = (path: string, must: string, got: unknown, fix: string): Issue[] => [
  issue('plan/unknown', 'error', path, { must, got, fix }),
];

/** The layout that a run describes, or the issues that prevent the planner from computing it. */
export const layoutOfRun = (run: RunSpec): RunLayout | Issue[] => layoutOn(run, clusterOf);

/** The layout of a run on the hosts that `hostsOf` selects. */
export function layoutOn(run: RunSpec, hostsOf: (run: RunSpec) => Cluster | Issue[]): RunLayout | Issue[] {
  const architecture = run.model?.architecture;
  if (!architecture) return withoutModel(run);
  const sequence = run.training.sequenceLength;
  if (!sequence)
    return problem('training.sequenceLength', 'must be given for a plan', undefined, 'add the tokens of one sequence');
  const cluster = hostsOf(run);
  if (Array.isArray(cluster)) return cluster;
  const parallel = findStrategy(run)?.layout(run);
  if (!parallel)
    return problem(
      'distribution.parameters',
      'must divide the world size',
      run.distribution.parameters,
      'see the issues of `slipway validate`',
    );
  const model = parameterShape(trainedModel(run, architecture));
  const fineTuning = fineTuningOf(run, model);
  if (Array.isArray(fineTuning)) return fineTuning;
  const degrees = degreesOf(run, parallel);
  const { given, ...batches } = batchesOf(run, degrees.shard * degrees.replicate);
  const layout = {
    ...cluster,
    ...degrees,
    ...batches,
    model,
    sequence,
    expert: parallel.expert,
    ...softwareOf(run),
    ...fineTuning,
  };
  return { assumptions: [...given, ...assumptionsOf(run, layout)], layout };
}

const withoutModel = ({ kind }: RunSpec): Issue[] =>
  kind === 'processing'
    ? problem('kind', 'must be training for a plan', kind, 'check a processing run with slipway preflight')
    : problem('model', 'must name a preset, a config or an architecture for a plan', undefined, 'add model.preset');

type Lora = NonNullable<RunSpec['training']['lora']>;

/** Why adapters cannot be planned: layers that the model does not have, or a model of other layers than those of the built-in trainer. */
function unknownLayers(lora: Lora, model: ParameterShape): Issue[] {
  const names = layersOfBlocks(model, lora.targets).map(({ name }) => name);
  const isOther = kindsOfBlocks(model).some(({ block }) => block.recurrence ?? block.attention ?? block.expertHidden);
  if (!isOther && lora.targets.every((name) => name === 'head' || names.includes(name))) return [];
  const must = 'must be layers of a model that the built-in trainer supports for a plan';
  return problem('training.lora.targets', must, lora.targets, 'plan without lora for an upper bound');
}

const outputsOf = (lora: Lora, model: ParameterShape): number =>
  layersOfBlocks(model, lora.targets).reduce((sum, { active, outputs, blocks }) => sum + blocks * active * outputs, 0) /
  model.layers;

type FineTuning = Pick<LayoutInput, 'adapters' | 'expertAdapters' | 'adaptedOutputs' | 'preferences' | 'quantized'>;

/** Adapters and preferences of a run, or why they cannot be planned. */
function fineTuningOf({ training }: RunSpec, model: ParameterShape): FineTuning | Issue[] {
  const { lora, objective } = training;
  const unknown = lora ? unknownLayers(lora, model) : [];
  if (unknown.length > 0) return unknown;
  return {
    ...(lora && {
      adapters: adapterParameters(model, lora),
      expertAdapters: adapterParameters(model, lora, ({ count }) => count > 1),
      adaptedOutputs: outputsOf(lora, model),
    }),
    ...(lora?.quantization && { quantized: true }),
    ...(objective === 'dpo' && { preferences: lora ? 'adapters' : 'copy' }),
  };
}

/** Batch sizes of a run for a number of data-parallel ranks; `given` lists the assumed values. */
function batchesOf(run: RunSpec, ranks: number) {
  const { microBatchSize, globalBatchSize } = run.training;
  const batch = microBatchSize ?? 1;
  const globalBatch = globalBatchSize ?? batch * ranks;
  return {
    microBatch: Math.max(1, Math.round(batch / partsOfBatch(run))),
    globalBatch,
    given: [
      ...(microBatchSize ? [] : ['training.microBatchSize is not given: 1']),
      ...(globalBatchSize ? [] : [`training.globalBatchSize is not given: ${globalBatch}`]),
    ],
  };
}

/** Number of parts into which SMP v1 splits the batch of one call for its pipeline (`microbatches`); 1 for other libraries. */
export const partsOfBatch = (run: RunSpec): number =>
  run.distribution.library === 'smp-v1' ? degree(run, 'microbatches', 1) : 1;

/** Hosts that train, and their network. */
export type Cluster = Pick<LayoutInput, 'accelerator' | 'nodes' | 'gpusPerNode' | 'networkGbps' | 'domainNodes'>;

/** The hosts that train; groups with different accelerators cannot be planned together. */
function clusterOf(run: RunSpec): Cluster | Issue[] {
  const groups = trainingGroupsOf(run);
  const types = groups.map((g) => findInstanceType(g.instanceType));
  const accelerators = types.map((t) => t?.accelerator).filter((a): a is Accelerator => a !== undefined);
  const [accelerator] = accelerators;
  const at = 'compute.instanceType';
  const given = run.compute.instanceType || groups.map((g) => g.instanceType).join(', ');
  if (!accelerator || accelerators.length !== types.length)
    return problem(at, 'must have GPUs for a plan', given, 'use a GPU type');
  if (accelerator.kind !== 'gpu')
    return problem(
      at,
      'must have GPUs for a plan of speed and cost: no measured step of a NeuronCore is known here',
      given,
      'use a GPU type, or slipway plan without options for its memory',
    );
  if (accelerators.some((a) => a.model !== accelerator.model)) {
    return problem(at, 'must be of one accelerator model for a plan', given, 'plan one group at a time');
  }
  const domainNodes = hostsOfDomain(run);
  return {
    accelerator,
    nodes: hostCount(groups),
    gpusPerNode: run.distribution.processesPerHost,
    networkGbps: types[0]?.networkGbps ?? 25,
    ...(domainNodes > 1 && { domainNodes }),
  };
}

type Degrees = Pick<
  LayoutInput,
  'shard' | 'replicate' | 'tensor' | 'pipeline' | 'context' | 'zeroStage' | 'virtualStages'
>;

function degreesOf(run: RunSpec, p: ParallelLayout): Degrees {
  const ranks = p.worldSize / (p.tensor * p.pipeline * p.context);
  // SMP v2 counts the context ranks among the shards.
  const own = run.distribution.library === 'smp-v2' ? (p.shard * p.expert) / p.context : p.shard;
  const shard = Number.isInteger(ranks / own) && own >= 1 ? own : ranks;
  const zeroStage = zeroStageOf(run, shard * p.context);
  return {
    shard: zeroStage === 0 ? 1 : shard,
    replicate: zeroStage === 0 ? ranks : ranks / shard,
    tensor: p.tensor,
    pipeline: p.pipeline,
    context: p.context,
    zeroStage,
    virtualStages: virtualStagesOf(run, p.pipeline),
  };
}

function zeroStageOf(run: RunSpec, ranks: number): LayoutInput['zeroStage'] {
  const { library, launcher, parameters } = run.distribution;
  if (launcher === 'ray' || library === 'fsdp' || library === 'smp-v2') return ranks === 1 ? 0 : 3;
  switch (library) {
    case 'deepspeed': {
      const { stage } = deepspeedConfig(run);
      return stage === 1 || stage === 2 || stage === 3 ? stage : 0;
    }
    case 'smp-v1':
      if (degree(run, 'sharded_data_parallel_degree', 1) > 1) return 3;
      return parameters.shard_optimizer_state === true ? 1 : 0;
    case 'megatron':
      return parameters['use-distributed-optimizer'] === true || parameters.use_distributed_optimizer === true ? 1 : 0;
    default:
      return 0;
  }
}

type Software = Omit<
  LayoutInput,
  keyof Cluster | keyof Degrees | 'model' | 'microBatch' | 'globalBatch' | 'sequence' | 'expert'
>;

const stackOf = (library: string): Stack =>
  library === 'megatron' || library === 'deepspeed' || library === 'smp-v1' ? library : 'fsdp';

/** Fused layers of the stack, and products in 8 and 4 bit, do not change; plain ones may be compiled. */
function kernelsOf(traits: StackTraits, precision: PlanPrecision, compiled: boolean): Kernels {
  if (traits.kernels === 'fused' || lowPrecisionOf({ precision })) return 'fused';
  return compiled ? 'compiled' : traits.kernels;
}

function precisionOf({ training: { precision, fp8Recipe } }: RunSpec): PlanPrecision {
  if (precision !== 'fp8' || !fp8Recipe || fp8Recipe === 'tensorwise') return precision;
  return `fp8-${fp8Recipe}`;
}

/** Megatron-Core reduces gradients in fp32 unless `grad-reduce-in-bf16` is set, as in NVIDIA's performance recipes. */
function gradientBytesOf({ library, parameters }: RunSpec['distribution'], traits: StackTraits): number {
  const inBf16 = parameters['grad-reduce-in-bf16'] === true || parameters.grad_reduce_in_bf16 === true;
  return library === 'megatron' && !inBf16 ? 4 : traits.gradientBytes;
}

/** Libraries with which the built-in trainer runs its own model; under SMP v2 it runs one of transformers. */
const CHUNKS_LOSS: ReadonlySet<string> = new Set(['fsdp', 'ddp', 'deepspeed']);

/** Its compiled loss computes the gradient from logits in 16 bit; the log-probabilities of preferences are not compiled. */
function ofBuiltinTrainer(run: RunSpec, compiled: boolean): Partial<Software> {
  const { code, training, distribution } = run;
  const recomputeLayers = Number(code.arguments['recompute-layers'] ?? 1);
  return {
    loss: compiled && training.objective !== 'dpo' ? '16-bit' : 'plain',
    lossChunks: Number(code.arguments['loss-chunks'] ?? 0),
    ...(recomputeLayers > 1 && { recomputeLayers }),
    wrapsOneRank:
      distribution.library !== 'deepspeed' && !(worldSize(run) === 1 && (compiled || training.precision === 'fp32')),
  };
}

/** What differs from FSDP2 with its defaults. The built-in trainer's DDP is FSDP without shards. */
function ofFsdp(run: RunSpec): Partial<Software> {
  const { library, parameters } = run.distribution;
  const keeps = library === 'fsdp' && parameters.reshard_after_forward === false;
  return { ...(keeps && { keepsGathered: true }), ...(isOwn(run) && usesFsdp1(run) && { isFsdp1: true }) };
}

const isOwn = ({ code, distribution }: RunSpec): boolean =>
  code.builtin === 'builtin' && CHUNKS_LOSS.has(distribution.library);

function softwareOf(run: RunSpec): Software {
  const { distribution, training } = run;
  const stack = stackOf(distribution.library);
  const { zero } = deepspeedConfig(run);
  const offloaded = (key: string) => ['cpu', 'nvme'].includes(String(section(zero[key]).device));
  const compiled = fsdpCompiles(run);
  const isOwnTrainer = isOwn(run);
  const { activationCheckpointing: requested } = training;
  const traits = distribution.library === 'smp-v2' ? SMP_V2 : STACKS[stack];
  return {
    ...traits,
    precision: precisionOf(run),
    recompute: requested === 'selective' ? selectiveOf({ stack, isOwnTrainer }) : requested,
    sequenceParallel: stack === 'fsdp' || flag(run, 'sequence-parallel')?.value === true,
    offloadOptimizer: offloaded('offload_optimizer'),
    offloadParameters: offloaded('offload_param'),
    offloadActivations: training.activationOffload || distribution.parameters.sm_activation_offloading === true,
    stack,
    kernels: kernelsOf(traits, precisionOf(run), compiled),
    loss: 'plain',
    ...(isOwnTrainer && ofBuiltinTrainer(run, compiled)),
    autocast: false,
    gathersLogits: false,
    prefetchesShards: true,
    collectives: distribution.collectives === 'smddp' ? 'smddp' : 'nccl',
    gradientBytes: gradientBytesOf(distribution, traits),
    optimizerInBackward: false,
    compilesUnlessTensor: compilesByDefault(run),
    sendsOncePerNode: false,
    ...(distribution.library === 'megatron' && ofMegatron(run)),
    isOwnTrainer,
    masksDocuments: masksDocuments(run),
    ...(keepsScores(run) && { attention: 'unfused' as const }),
    ...(changesScores(run) && { changesScores: true }),
    ...((run.model?.architecture.normPlacement ?? 'pre') !== 'pre' && { normsBehind: true }),
    noSync: stack === 'fsdp' && distribution.parameters.no_sync === true,
    ...ofFsdp(run),
  };
}
