import { blockSeconds, headSeconds, tokensPerRank } from './compute';
import type { Constants } from './constants';
import type { Gpu } from './gpu';
import { type LayoutInput, microBatchesOf, worldSizeOf } from './layout';
import { blockParametersPerExpertRank, totalParameters } from './model-size';
import { gatherSeconds, groupOf, type Network, networkOf, reduceSeconds, sendSeconds } from './network';

/** Where the seconds of one step go. The parts add up to `total`. */
export interface StepSeconds {
  total: number;
  matmul: number;
  attention: number;
  elementwise: number;
  recompute: number;
  head: number;
  tensorParallel: number;
  contextParallel: number;
  pipelineParallel: number;
  bubble: number;
  expertParallel: number;
  /** AllGather and ReduceScatter of sharded parameters, or the gradients' reduction, as far as nothing hides them. */
  dataParallel: number;
  optimizer: number;
  offload: number;
  host: number;
}

/** Share of a forward block that is computed again in the backward pass. */
const RECOMPUTED: Readonly<Record<LayoutInput['recompute'], { products: number; core: number; traffic: number }>> = {
  none: { products: 0, core: 0, traffic: 0 },
  full: { products: 1, core: 1, traffic: 1 },
  block: { products: 0.5, core: 0.5, traffic: 0.5 },
  op: { products: 0.5, core: 0, traffic: 1 },
  core: { products: 0, core: 1, traffic: 0 },
};

interface Block {
  matmul: number;
  attention: number;
  elementwise: number;
  recompute: number;
  tensorParallel: number;
  contextParallel: number;
  expertParallel: number;
  dataParallel: number;
  offload: number;
  host: number;
}

/**
 * Seconds of one optimizer step. More nodes at the same batch are never counted slower than half of them would be: the larger
 * cluster could always leave half of itself idle.
 */
export function stepSeconds(l: LayoutInput, gpu: Gpu, k: Constants): StepSeconds {
  const here = plainStepSeconds(l, gpu, k);
  // Half the nodes compute twice as long, which alone rules them out for nearly every layout.
  const compute = here.matmul + here.attention + here.elementwise + here.recompute;
  if (l.nodes < 4 || l.nodes % 2 !== 0 || 2 * compute >= here.total) return here;
  return halves(l)
    .map((half) => stepSeconds(half, gpu, k))
    .reduce((best, half) => (half.total < best.total ? half : best), here);
}

/** The same step on half the nodes: more micro-batches, or larger ones. */
function halves(l: LayoutInput): LayoutInput[] {
  const fewer = [
    ...(l.shard % 2 === 0 ? [{ shard: l.shard / 2 }] : []),
    ...(l.replicate % 2 === 0 ? [{ replicate: l.replicate / 2 }] : []),
  ];
  return fewer.flatMap((ranks) =>
    [l.microBatch, 2 * l.microBatch].map((microBatch) => ({ ...l, ...ranks, nodes: l.nodes / 2, microBatch })),
  );
}

/** The same without looking at smaller clusters: equal but for layouts that wait for the network most of the time. */
export function plainStepSeconds(l: LayoutInput, gpu: Gpu, k: Constants): StepSeconds {
  const net = networkOf(l, gpu, k);
  const block = blockOf(l, gpu, net, k);
  const head = headSeconds(l, gpu, k);
  const micro = microBatchesOf(l);
  const layers = Math.ceil(l.model.layers / l.pipeline);
  const layersOfLast = l.model.layers - layers * (l.pipeline - 1);
  const perBlock =
    block.expertParallel +
    block.matmul +
    block.attention +
    block.elementwise +
    block.recompute +
    block.tensorParallel +
    block.contextParallel +
    block.dataParallel +
    block.offload +
    block.host;
  const first = layers * perBlock;
  // The head makes the last stage the slow one unless it has fewer blocks.
  const stage = Math.max(first, Math.max(0, layersOfLast) * perBlock + head);
  const headWait = stage - first;
  const hop = pipelineSeconds(l, net, k);
  const bubbles = (l.pipeline - 1) / l.virtualStages;
  const gradients = gradientSeconds(l, net, k, stage);
  const accumulate = accumulationSeconds(l, gpu, k);
  const optimizer = optimizerSeconds(l, gpu);
  const offload = offloadSeconds(l, gpu, k);
  const times = micro * layers;
  const parts = {
    matmul: times * block.matmul,
    attention: times * block.attention,
    elementwise: times * block.elementwise + micro * accumulate,
    recompute: times * block.recompute,
    head: micro * headWait,
    tensorParallel: times * block.tensorParallel,
    contextParallel: times * block.contextParallel,
    pipelineParallel: micro * hop,
    bubble: bubbles * (stage + hop),
    expertParallel: times * block.expertParallel,
    dataParallel: times * block.dataParallel + gradients,
    optimizer,
    offload: times * block.offload + offload,
    host: times * block.host + k.stepSeconds,
  };
  return withJitter(parts, l, k);
}

/** Stragglers: a step waits for the slowest rank, and each doubling of the nodes finds a slower one. */
function withJitter(parts: Omit<StepSeconds, 'total'>, l: LayoutInput, k: Constants): StepSeconds {
  const sum =
    parts.expertParallel +
    parts.matmul +
    parts.attention +
    parts.elementwise +
    parts.recompute +
    parts.head +
    parts.tensorParallel +
    parts.contextParallel +
    parts.pipelineParallel +
    parts.bubble +
    parts.dataParallel +
    parts.optimizer +
    parts.offload +
    parts.host;
  const wait = sum * k.jitterPerDoubling * Math.log2(l.nodes);
  return { ...parts, host: parts.host + wait, total: sum + wait };
}

/** One block of one micro-batch, forward and backward, with what its communication adds. */
function blockOf(l: LayoutInput, gpu: Gpu, net: Network, k: Constants): Block {
  const b = blockSeconds(l, gpu, k);
  const again = RECOMPUTED[l.recompute];
  const matmul = 3 * b.gemmForward;
  const attention = b.attentionForward + b.attentionBackward;
  const elementwise = 3 * b.trafficForward;
  const recompute = again.products * b.gemmForward + again.core * b.attentionForward + again.traffic * b.trafficForward;
  const tensorParallel = tensorSeconds(l, net, k, again.products);
  const contextParallel = contextSeconds(l, net, k, b.attentionForward);
  const forward = b.gemmForward + b.attentionForward + b.trafficForward + tensorParallel / 3 + contextParallel / 3;
  const backward = matmul + attention + elementwise + recompute + tensorParallel + contextParallel - forward;
  // A pass takes at least the time that launching its kernels takes.
  const idleForward = Math.max(0, b.launchForward - forward);
  const idleBackward = Math.max(0, (2 + again.traffic) * b.launchForward - backward);
  return {
    matmul,
    attention,
    elementwise,
    recompute,
    tensorParallel,
    contextParallel,
    expertParallel: expertSeconds(l, net),
    dataParallel: shardSeconds(l, net, k, forward + idleForward, backward + idleBackward),
    offload: activationOffloadSeconds(l, gpu, forward + idleForward, backward + idleBackward),
    host: idleForward + idleBackward,
  };
}

/** What communication adds to work it runs beside: the part that sticks out, and a tax on both while they share the GPU. */
const added = (work: number, communication: number, tax: number) =>
  Math.max(0, communication - work) + tax * Math.min(work, communication);

/** Two AllReduces (or their halves with sequence parallelism) forward, two backward, two more when the block is recomputed. */
function tensorSeconds(l: LayoutInput, net: Network, k: Constants, again: number): number {
  if (l.tensor === 1) return 0;
  const bytes = 2 * tokensPerRank(l) * l.model.hidden;
  const group = groupOf(l.tensor, 1, l.gpusPerNode);
  const one = reduceSeconds(bytes, group, net);
  const engine = l.stack === 'megatron-legacy' && l.zeroStage > 0;
  const exposed = l.overlapsTensor ? k.tensorExposed : engine ? k.tensorExposedEngine : k.tensorExposedLegacy;
  return (4 + 2 * again) * one * exposed;
}

/** Keys and values go round the ring while attention works on those already here. */
function contextSeconds(l: LayoutInput, net: Network, k: Constants, attentionForward: number): number {
  if (l.context === 1) return 0;
  const m = l.model;
  const bytes = (4 * tokensPerRank(l) * m.kvHeads * m.headSize * (l.context - 1)) / l.tensor;
  const nodeHop = l.tensor * l.context > l.gpusPerNode;
  const ring = sendSeconds(bytes, nodeHop, net);
  return 3 * added(attentionForward, ring, k.contextExposed);
}

/** Tokens travel to their experts and back, forward and backward; each rank keeps the share that stays with it. */
function expertSeconds(l: LayoutInput, net: Network): number {
  if (l.expert === 1) return 0;
  const group = groupOf(l.expert, l.tensor, l.gpusPerNode);
  const bytes = (2 * tokensPerRank(l) * l.model.expertsPerToken * l.model.hidden) / l.tensor;
  const away = (bytes * (l.expert - 1)) / l.expert;
  return 4 * sendSeconds(away, group.nodes > 1, net);
}

/** Ranks that hold the shards of one replica: data-parallel and context ranks together. */
export const shardGroupSize = (l: LayoutInput) => l.shard * l.context;

/** ZeRO-3 and FSDP gather each block's parameters twice and scatter its gradients, every micro-batch. */
function shardSeconds(l: LayoutInput, net: Network, k: Constants, forward: number, backward: number): number {
  const size = shardGroupSize(l);
  if (l.zeroStage !== 3 || size === 1) return 0;
  const group = groupOf(size, l.tensor, l.gpusPerNode);
  const parameters = blockParametersPerExpertRank(l.model, l.expert) / l.tensor;
  const gather = gatherSeconds(2 * parameters, group, net);
  const scatter = gatherSeconds(reduceBytesOf(l, k) * parameters, group, net);
  const tax = overlapTax(l, k);
  return added(forward, gather, tax) + added(backward, gather + scatter, tax);
}

/** SMDDP's AllGather leaves the multiprocessors to the products: fewer than 9 instead of 24 are taken, as AWS reports. */
const SMDDP_TAX = 9 / 24;

function overlapTax(l: LayoutInput, k: Constants): number {
  if (!l.prefetchesShards) return 1;
  const tax = l.stack === 'deepspeed' ? k.deepspeedOverlapCost : k.overlapCost;
  return l.collectives === 'smddp' && l.nodes > 1 ? tax - (1 - SMDDP_TAX) * Math.min(tax, k.overlapCost) : tax;
}

const reduceBytesOf = (l: LayoutInput, k: Constants) =>
  l.stack === 'deepspeed' || l.precision === 'bf16-pure' || l.stack === 'jax' ? 2 : k.reduceBytes;

/** Gradients across replicas, once a step; the last backward pass hides what it can. */
function gradientSeconds(l: LayoutInput, net: Network, k: Constants, stage: number): number {
  const local = totalParameters(l.model) / (l.tensor * l.pipeline);
  const stride = l.tensor;
  const size = shardGroupSize(l);
  const hidden = (2 / 3) * stage;
  let seconds = 0;
  if (l.zeroStage < 3) {
    const group = groupOf(size * l.replicate, stride, l.gpusPerNode);
    seconds = gatherSeconds(gradientBytes(l) * local, group, net);
  } else if (l.replicate > 1) {
    const group = groupOf(l.replicate, stride * size, l.gpusPerNode);
    seconds = reduceSeconds((reduceBytesOf(l, k) * local) / size, group, net);
  }
  const legacy = l.stack === 'megatron-legacy' || l.stack === 'deepspeed' || l.stack === 'nanotron';
  return legacy ? k.gradientExposedLegacy * seconds : added(hidden, seconds, k.gradientExposed);
}

/**
 * Bytes per parameter that cross the group once a step: gradients reduced whole (twice their size) or scattered (once), and the new
 * 16-bit parameters gathered. Megatron-DeepSpeed and nanotron keep bf16 gradients in fp32.
 */
function gradientBytes(l: LayoutInput): number {
  if (l.zeroStage === 0) return l.stack === 'nanotron' ? 8 : 4;
  if (l.stack === 'megatron') return 4;
  return l.precision === 'fp16' ? 6 : 10;
}

/** Activations to the next stage and their gradients back, for each virtual stage. */
function pipelineSeconds(l: LayoutInput, net: Network, k: Constants): number {
  if (l.pipeline === 1) return 0;
  const ranksOfStage = worldSizeOf(l) / l.pipeline;
  const bytes = (2 * tokensPerRank(l) * l.model.hidden) / l.tensor;
  return 2 * l.virtualStages * sendSeconds(bytes, ranksOfStage >= l.gpusPerNode, net) * k.pipelineExposed;
}

/** Adding a micro-batch's gradients to those of the step: they are read and written in the precision they are kept in. */
function accumulationSeconds(l: LayoutInput, gpu: Gpu, k: Constants): number {
  if (l.zeroStage >= 2 || microBatchesOf(l) === 1) return 0;
  const local = totalParameters(l.model) / (l.tensor * l.pipeline);
  const bytes = l.stack === 'nanotron' ? 10 : 2 + 2 * Math.min(4, l.gradientBytes);
  return (k.accumulationTraffic * bytes * local) / gpu.memoryBytesPerSecond;
}

/** Bytes Adam moves per parameter: gradient, two moments, master and copy, read and written. */
const ADAM_TRAFFIC = 34;

const localStateParameters = (l: LayoutInput) =>
  totalParameters(l.model) / (l.tensor * l.pipeline * (l.zeroStage > 0 ? shardGroupSize(l) : 1));

function optimizerSeconds(l: LayoutInput, gpu: Gpu): number {
  return l.offloadOptimizer ? 0 : (ADAM_TRAFFIC * localStateParameters(l)) / gpu.memoryBytesPerSecond;
}

/** The CPU's Adam and the way there and back; parameters kept on the host are fetched for each pass. */
function offloadSeconds(l: LayoutInput, gpu: Gpu, k: Constants): number {
  const own = localStateParameters(l);
  const optimizer = l.offloadOptimizer ? own / k.cpuAdamParametersPerSecond + (4 * own) / gpu.hostBytesPerSecond : 0;
  const parameters = l.offloadParameters ? (microBatchesOf(l) * 6 * own) / gpu.hostBytesPerSecond : 0;
  return optimizer + parameters;
}

/** Block inputs go to the host in the forward pass and come back in the backward pass. */
function activationOffloadSeconds(l: LayoutInput, gpu: Gpu, forward: number, backward: number): number {
  if (!l.offloadActivations) return 0;
  const seconds = (2 * tokensPerRank(l) * l.model.hidden) / l.tensor / gpu.hostBytesPerSecond;
  return added(forward, seconds, 0.1) + added(backward, seconds, 0.1);
}
