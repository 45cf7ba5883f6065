import type { Constants } from '../constants';
import type { Gpu } from '../gpu';
import { type LayoutInput, microBatchesOf, trainedParameters, worldSizeOf } from '../layout';
import { tokensPerRank } from './compute';
import { gatherSeconds, groupOf, type Network, reduceSeconds, sendSeconds } from './network';
import { added, reduceBytesOf, shardGroupSize } from './overlap';
import { sumsOfStep } from './shard-traffic';

/**
 * Reduction of gradients across replicas, once per step, or under FSDP1 after every micro-batch; the backward pass before it hides a part of
 * it.
 */
export function gradientSeconds(l: LayoutInput, net: Network, k: Constants, stage: number): number {
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
export function pipelineSeconds(l: LayoutInput, net: Network, k: Constants): number {
  if (l.pipeline === 1) return 0;
  const ranksOfStage = worldSizeOf(l) / l.pipeline;
  const bytes = (2 * tokensPerRank(l) * l.model.hidden) / l.tensor;
  return 2 * l.virtualStages * sendSeconds(bytes, ranksOfStage >= net.gpusPerNode, net) * k.pipelineExposed;
}

/** Accumulating a micro-batch's gradients: they are read and written in the precision in which they are kept. */
export function accumulationSeconds(l: LayoutInput, gpu: Gpu, k: Constants): number {
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
export function optimizerSeconds(l: LayoutInput, gpu: Gpu): number {
  return l.offloadOptimizer ? 0 : (ADAM_TRAFFIC * localStateParameters(l)) / gpu.memoryBytesPerSecond;
}

/** CPU Adam and the transfers to and from the host; parameters kept on the host are fetched for each pass. */
export function offloadSeconds(l: LayoutInput, gpu: Gpu, k: Constants): number {
  const own = localStateParameters(l);
  const optimizer = l.offloadOptimizer ? own / k.cpuAdamParametersPerSecond + (4 * own) / gpu.hostBytesPerSecond : 0;
  const parameters = l.offloadParameters ? (microBatchesOf(l) * 6 * own) / gpu.hostBytesPerSecond : 0;
  return optimizer + parameters;
}
