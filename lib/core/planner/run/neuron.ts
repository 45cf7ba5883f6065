import { type Accelerator, findInstanceType } from '../../catalog/instances/instances';
import { activeParameterCount, parameterCount } from '../../catalog/model/parameters';
import type { Issue } from '../../config/issue';
import { hostCount, trainingGroupsOf } from '../../config/resolve-run';
import type { RunSpec } from '../../config/run-spec';
import { type LayoutInput, worldSizeOf } from '../layout';
import { type MemoryGiB, memoryOf } from '../memory/memory';
import { PLANNER_CONSTANTS, stateGiB } from '../plan';
import { type Cluster, layoutOn, type RunLayout } from './layout-of-run';

/** GiB on one NeuronCore by component. Buffers and allocator overhead are left out, because they are known only for CUDA. */
export type NeuronMemoryGiB = Omit<MemoryGiB, 'buffers' | 'fragmentation'>;

/**
 * The assumptions of a plan for Trainium. Recommended layouts:
 * https://awsdocs-neuron.readthedocs-hosted.com/en/latest/training/best-practices.html (one process per logical core; tensor parallelism
 * within a chip, FSDP between chips), retrieved 2026-11-23.
 */
const ASSUMPTIONS: readonly string[] = [
  'parameters, gradients and AdamW are sharded over all NeuronCores (fully_shard), with weights and moments in fp32',
  'what the Neuron runtime, its collectives and compiled programs take of the memory is not counted: AWS publishes no figure',
  'speed, time and cost are not known: no measured step of a NeuronCore is among the rows that the planner is fitted to',
];

/** Memory of a run on Trainium; undefined when no training host has NeuronCores. */
export function planNeuron(run: RunSpec): NeuronPlan | Issue[] | undefined {
  const types = trainingGroupsOf(run).map((group) => findInstanceType(group.instanceType));
  const [first] = types;
  const chip = first?.accelerator;
  if (!first || chip?.kind !== 'neuron' || types.some((type) => type?.name !== first.name)) return undefined;
  const cluster = clusterOf(run, chip, first.networkGbps);
  const mapped = layoutOn(run, () => cluster);
  if (Array.isArray(mapped)) return mapped;
  const layouts = tensorDegrees(chip, cluster, mapped.layout).map((tensor) => sharded(mapped.layout, tensor));
  return { ...planOf(mapped, layouts), instanceType: first.name };
}

/** What can be computed before a run on Trainium: memory by arithmetic. It contains no speeds. */
export type NeuronPlan = ReturnType<typeof planOf> & { instanceType: string };

function planOf({ layout, assumptions }: RunLayout, layouts: NeuronLayout[]) {
  const { memoryGiB: coreGiB } = layout.accelerator;
  const isTooLarge = layouts.every(({ memoryGiB }) => stateGiB(memoryGiB) > coreGiB);
  return {
    // oom: weights, gradients and optimizer alone do not fit, divided among all NeuronCores; unknown: it is not known whether the rest fits.
    fits: isTooLarge ? ('oom' as const) : ('unknown' as const),
    /** Logical NeuronCores over all instances; one process each. */
    cores: worldSizeOf(layout),
    /** One core's share of the device memory, before what the runtime uses. */
    coreGiB,
    parameters: parameterCount(layout.model),
    activeParameters: activeParameterCount(layout.model),
    layouts,
    tokensPerSecond: null,
    usd: null,
    assumptions: [...assumptions, ...ASSUMPTIONS],
  };
}

/** Uses the cores of a host in place of its GPUs, each with its share of the device memory. */
function clusterOf(run: RunSpec, chip: Accelerator, networkGbps = 25): Cluster {
  const coresPerNode = run.distribution.processesPerHost;
  const memoryGiB = (chip.memoryGiB * chip.count) / coresPerNode;
  return {
    accelerator: { ...chip, count: coresPerNode, memoryGiB },
    nodes: hostCount(trainingGroupsOf(run)),
    gpusPerNode: coresPerNode,
    networkGbps,
  };
}

/** No tensor parallelism, and tensor parallelism over all cores of a chip. */
function tensorDegrees(chip: Accelerator, { gpusPerNode }: Cluster, { model }: LayoutInput): number[] {
  const ofChip = Math.floor(gpusPerNode / chip.count);
  return ofChip > 1 && model.heads % ofChip === 0 ? [1, ofChip] : [1];
}

/** One way to divide the model: tensor-parallel groups, and fully sharded data parallelism over all of them. */
export type NeuronLayout = ReturnType<typeof sharded>;

function sharded(layout: LayoutInput, tensor: number) {
  const shard = worldSizeOf(layout) / tensor;
  const l: LayoutInput = { ...layout, tensor, shard, replicate: 1, pipeline: 1, context: 1, zeroStage: 3 };
  const { buffers, fragmentation, total, ...parts } = memoryOf(
    { ...l, sequenceParallel: tensor > 1 },
    PLANNER_CONSTANTS.memory,
  );
  return { tensor, shard, memoryGiB: { ...parts, total: total - buffers - fragmentation } satisfies NeuronMemoryGiB };
}
