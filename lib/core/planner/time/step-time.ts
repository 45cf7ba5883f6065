import type { Constants } from '../constants';
import type { Gpu } from '../gpu';
import { type LayoutInput, microBatchesOf } from '../layout';
import { stageLayers } from '../stages';
import { blockOf } from './block-time';
import { headSeconds } from './compute';
import { networkOf } from './network';
import {
  accumulationSeconds,
  gradientSeconds,
  offloadSeconds,
  optimizerSeconds,
  pipelineSeconds,
} from './step-overheads';

/** Components of the time of one step, seconds. They add up to `total`. */
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
  /** AllGather and ReduceScatter of sharded parameters, or the reduction of gradients, as far as they are not hidden. */
  dataParallel: number;
  optimizer: number;
  offload: number;
  host: number;
}

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
export function plainStepSeconds(l: LayoutInput, gpu: Gpu, k: Constants): StepSeconds {
  const net = networkOf(l, gpu, k);
  const block = blockOf(l, gpu, net, k);
  const head = headSeconds(l, gpu, k);
  const micro = microBatchesOf(l);
  const { most: layers, last: layersOfLast } = stageLayers(l);
  const perBlock = sumOfBlock(block);
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
    matmul: times * block.matmul,
    attention: times * block.attention,
    elementwise: times * block.elementwise + micro * accumulate,
    recompute: times * block.recompute,
    head: micro * headWait,
    tensorParallel: times * block.tensorParallel,
    contextParallel: times * block.contextParallel,
    pipelineParallel: micro * hop,
    bubble: bubbles * (first + hop),
    expertParallel: times * block.expertParallel,
    dataParallel: times * block.dataParallel + gradients,
    optimizer: optimizerSeconds(l, gpu),
    offload: times * block.offload + offloadSeconds(l, gpu, k),
    host: times * block.host + k.stepSeconds,
  };
  return withJitter(parts, l, k);
}

const sumOfBlock = (block: ReturnType<typeof blockOf>): number =>
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

/** Stragglers: a step waits for the slowest rank, and each doubling of the nodes adds a slower one. */
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
