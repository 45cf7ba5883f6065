import type { Constants } from '../constants';
import type { Gpu } from '../gpu';
import { type LayoutInput, microBatchesOf, trainedParameters, worldSizeOf } from '../layout';
import { stageLayers } from '../model-size';
import { type Block, blockOf } from './block-time';
import { headSeconds, tokensPerRank } from './compute';
import {
  added,
  gatherSeconds,
  groupOf,
  type Network,
  networkOf,
  reduceBytesOf,
  reduceSeconds,
  sendSeconds,
  shardGroupSize,
  sumsOfStep,
} from './network';

/**
 * Reduction of gradients across replicas, once per step, or under FSDP1 after every micro-batch; the backward pass before it hides a part of
 * it.
 */
function gradientSeconds(l: LayoutInput, net: Network, k: Constants, stage: number): number {
  const local = trainedParameters(l) / (l.tensor * l.pipeline);
  const stride = l.tensor;
  const size = shardGroupSize(l);
  const hidden = (2 / 3) * stage;
  const atOnce = l.stack === 'megatron-legacy' || l.stack === 'deepspeed' || l.stack === 'nanotron';
  let seconds = 0;
  if (l.zeroStage < 3) {
    const group = groupOf(size * l.replicate, stride, net.gpusPerNode);
    // AllReduce uses a tree; ReduceScatter and AllGather use rings, which congest the network when all groups communicate at once.
    const crowding = atOnce && l.zeroStage > 0 ? k.gradientCrowding : 0;
    seconds = gatherSeconds(gradientBytes(l) * local, group, { ...net, lossPerNode: 0, crowding });
  } else if (l.replicate > 1) {
    const group = groupOf(l.replicate, stride * size, net.gpusPerNode);
    seconds = reduceSeconds((reduceBytesOf(l, k) * local) / size, group, net);
  }
  if (atOnce) return k.gradientExposedLegacy * seconds;
  return sumsOfStep(l) * added(hidden, seconds, k.gradientExposed);
}

/**
 * Bytes per parameter that the group exchanges once per step: gradients reduced in full (twice their size) or reduce-scattered (once), and
 * the gather of the new 16-bit parameters. The built-in trainer, Megatron-DeepSpeed and nanotron sum bf16 gradients in fp32; nanotron
 * reduce-scatters them under ZeRO-1 (https://github.com/huggingface/nanotron, optim/gradient_accumulator.py), Megatron-DeepSpeed reduces them in full.
 */
function gradientBytes(l: LayoutInput): number {
  if (l.zeroStage === 0) return l.stack === 'nanotron' || (l.stack === 'fsdp' && l.isOwnTrainer) ? 8 : 4;
  if (l.stack === 'megatron') return 4;
  return l.precision === 'fp16' || l.stack === 'nanotron' ? 6 : 10;
}

/** Activations sent to the next stage and gradients sent back, for each virtual stage. */
function pipelineSeconds(l: LayoutInput, net: Network, k: Constants): number {
  if (l.pipeline === 1) return 0;
  const ranksOfStage = worldSizeOf(l) / l.pipeline;
  const bytes = (2 * tokensPerRank(l) * l.model.hidden) / l.tensor;
  return 2 * l.virtualStages * sendSeconds(bytes, ranksOfStage >= net.gpusPerNode, net) * k.pipelineExposed;
}

/** Accumulating a micro-batch's gradients: they are read and written in the precision in which they are kept. */
function accumulationSeconds(l: LayoutInput, gpu: Gpu, k: Constants): number {
  if (l.zeroStage >= 2 || microBatchesOf(l) === 1) return 0;
  const local = trainedParameters(l) / (l.tensor * l.pipeline);
  const bytes = l.stack === 'nanotron' ? 10 : 2 + 2 * Math.min(4, l.gradientBytes);
  return (k.accumulationTraffic * bytes * local) / gpu.memoryBytesPerSecond;
}

/** Bytes that Adam moves per parameter: gradient, two moments, master and working copy, read and written. */
const ADAM_TRAFFIC = 34;

const localStateParameters = (l: LayoutInput) =>
  trainedParameters(l) / (l.tensor * l.pipeline * (l.zeroStage > 0 ? shardGroupSize(l) : 1));

/** Seconds of one optimizer step: the bytes of a rank's weights, gradients and state divided by the memory bandwidth. */
function optimizerSeconds(l: LayoutInput, gpu: Gpu): number {
  return l.offloadOptimizer ? 0 : (ADAM_TRAFFIC * localStateParameters(l)) / gpu.memoryBytesPerSecond;
}

/**
 * CPU Adam and the transfers to and from the host; parameters kept on the host are fetched for each pass. Adam is bound by the host's memory,
 * and moves half of the bytes where parameters, gradients and state are in bf16.
 */
function offloadSeconds(l: LayoutInput, gpu: Gpu, k: Constants): number {
  const own = localStateParameters(l);
  const adam = (l.precision === 'bf16-pure' ? 0.5 : 1) / k.cpuAdamParametersPerSecond;
  const optimizer = l.offloadOptimizer ? own * (adam + 4 / gpu.hostBytesPerSecond) : 0;
  const parameters = l.offloadParameters ? (microBatchesOf(l) * 6 * own) / gpu.hostBytesPerSecond : 0;
  return optimizer + parameters;
}

/**
 * Components of the time of one step, seconds. They add up to `total`. `dataParallel`: AllGather and ReduceScatter of sharded parameters, or the
 * reduction of gradients, as far as they are not hidden.
 */
export type StepSeconds = Block & Record<'total' | 'head' | 'pipelineParallel' | 'bubble' | 'optimizer', number>;

/**
 * Seconds of one optimizer step. More nodes with the same batch are never predicted to be slower than half of them: the larger cluster
 * could leave half of itself idle.
 */
export function stepSeconds(l: LayoutInput, gpu: Gpu, k: Constants): StepSeconds {
  const known = new Map<string, StepSeconds>();
  // Different sequences of halving reach the same cluster: a layout on 512 nodes has a quarter of a million of them, but only a few hundred
  // distinct smaller layouts.
  const best = (layout: LayoutInput): StepSeconds => {
    const key = `${layout.shard} ${layout.replicate} ${layout.microBatch}`;
    const found = known.get(key) ?? bestOf(plainStepSeconds(layout, gpu, k), layout, best);
    known.set(key, found);
    return found;
  };
  return best(l);
}

/** The step on all nodes, or on fewer nodes if that is faster. */
function bestOf(here: StepSeconds, l: LayoutInput, best: (half: LayoutInput) => StepSeconds): StepSeconds {
  // Half of the nodes compute twice as long, which alone rules them out for nearly every layout.
  const compute = here.matmul + here.attention + here.elementwise + here.recompute;
  if (l.nodes < 4 || l.nodes % 2 !== 0 || 2 * compute >= here.total) return here;
  return halves(l)
    .map(best)
    .reduce((least, half) => (half.total < least.total ? half : least), here);
}

/** The same step on half of the nodes: with more micro-batches, or larger ones. */
function halves(l: LayoutInput): LayoutInput[] {
  const fewer = [
    ...(l.shard % 2 === 0 ? [{ shard: l.shard / 2 }] : []),
    ...(l.replicate % 2 === 0 ? [{ replicate: l.replicate / 2 }] : []),
  ];
  return fewer.flatMap((ranks) =>
    [l.microBatch, 2 * l.microBatch].map((microBatch) => ({ ...l, ...ranks, nodes: l.nodes / 2, microBatch })),
  );
}

/** The same without considering smaller clusters: equal except for layouts that mostly wait for the network. */
function plainStepSeconds(l: LayoutInput, gpu: Gpu, k: Constants): StepSeconds {
  const net = networkOf(l, gpu, k);
  const block = blockOf(l, gpu, net, k);
  const head = headSeconds(l, gpu, k);
  const micro = microBatchesOf(l);
  const { most: layers, last: layersOfLast } = stageLayers(l);
  const perBlock = totalOf(block);
  const first = layers * perBlock;
  // The head makes the last stage the slowest unless it has fewer blocks.
  const stage = Math.max(first, layersOfLast * perBlock + head);
  const headWait = stage - first;
  const hop = pipelineSeconds(l, net, k);
  const bubbles = (l.pipeline - 1) / l.virtualStages;
  const gradients = gradientSeconds(l, net, k, stage);
  const accumulate = accumulationSeconds(l, gpu, k);
  const times = micro * layers;
  const parts = {
    expertParallel: times * block.expertParallel,
    matmul: times * block.matmul,
    attention: times * block.attention,
    elementwise: times * block.elementwise + micro * accumulate,
    recompute: times * block.recompute,
    head: micro * headWait,
    tensorParallel: times * block.tensorParallel,
    contextParallel: times * block.contextParallel,
    pipelineParallel: micro * hop,
    bubble: bubbles * (first + hop),
    dataParallel: times * block.dataParallel + gradients,
    optimizer: optimizerSeconds(l, gpu),
    offload: times * block.offload + offloadSeconds(l, gpu, k),
    host: times * block.host + k.stepSeconds,
  };
  return withJitter(parts, l, k);
}

/** In the order of the keys: another order would round differently. */
const totalOf = (parts: object): number => Object.values(parts).reduce((sum: number, part: number) => sum + part, 0);

/** Stragglers: a step waits for the slowest rank, and each doubling of the nodes adds a slower one. */
function withJitter(parts: Omit<StepSeconds, 'total'>, l: LayoutInput, k: Constants): StepSeconds {
  const sum = totalOf(parts);
  const wait = sum * k.jitterPerDoubling * Math.log2(l.nodes);
  return { ...parts, host: parts.host + wait, total: sum + wait };
}
