import { layerParametersOfRank } from '../../catalog/model/parameters';
import { commonDivisor } from '../../distribution/ultra-servers';
import type { Constants } from '../constants';
import type { Gpu } from '../gpu';
import {
  adaptersOfBlock,
  domainGpusOf,
  elementBytesOf,
  expertTensorOf,
  keepsGatheredUntilForward,
  type LayoutInput,
  microBatchesOf,
  quantizedOfBlock,
  storedBytes,
} from '../layout';
import { expertHiddenOf, meanHeadSize } from '../model-size';
import { tokensPerRank } from './compute';

/**
 * Placement of the members of one communication group, `perNode` of them on each node. A node here is an NVLink domain: an instance, or the
 * instances of an UltraServer.
 */
export type Group = Record<'size' | 'perNode' | 'nodes', number>;

/**
 * A group of `size` ranks with a distance of `stride` ranks; ranks fill one node after the other. If nodes do not hold whole numbers of
 * groups, this is a group on two nodes with the fewest members together, because all groups wait for the slowest.
 */
export function groupOf(size: number, stride: number, gpusPerNode: number): Group {
  const span = size * stride;
  if (span <= gpusPerNode && gpusPerNode % span !== 0) {
    return { size, perNode: Math.max(1, Math.floor(commonDivisor(span, gpusPerNode) / stride)), nodes: 2 };
  }
  const perNode = Math.max(1, Math.min(size, Math.floor(gpusPerNode / stride)));
  return { size, perNode, nodes: Math.ceil(size / perNode) };
}

/** Hill exponent of NCCL's bandwidth as a function of message size: 0.68 to 0.91 in the published nccl-tests curves. */
const HILL = 0.75;

/** Time at full bandwidth, lengthened for small messages: `half` is the time at which half of the bandwidth is reached. */
function saturated(seconds: number, half: number): number {
  if (seconds <= 0) return 0;
  return seconds * (1 + (half / seconds) ** HILL);
}

/**
 * Speeds of one cluster for collectives. `nodeBytesPerSecond`: all interfaces of one node or UltraServer together, after wire efficiency;
 * `gpusPerNode`: GPUs connected by NVLink; `lossPerNode`: relative slowdown of a gather with each node beyond the first; `crowding`: the same as an
 * exponent of the number of ranks in the ring, when all groups of a cluster communicate at the same time and any hop may be the slow one.
 */
export type Network = Record<
  | 'linkBytesPerSecond'
  | 'nodeBytesPerSecond'
  | 'gpusPerNode'
  | 'latencyInside'
  | 'latencyAcross'
  | 'latencyPerNode'
  | 'lossPerNode'
  | 'crowding',
  number
>;

/**
 * SMDDP AllGather moves data peer to peer over EFA, so that its latency does not grow with the ring; AWS reports about 90 % of the line
 * rate against 80 % for NCCL on ml.p4d.24xlarge
 * (https://aws.amazon.com/blogs/machine-learning/enable-faster-training-with-amazon-sagemaker-data-parallel-library/).
 */
const SMDDP_WIRE_GAIN = 0.9 / 0.8;

/**
 * Half of the bandwidth is reached at messages of 1.0 ms on p4de and 0.36 ms on p5, whose network is eight times as fast (nccl-tests of
 * awslabs/awsome-distributed-ai, two nodes): latency scales with the inverse square root.
 */
const REFERENCE_GBPS = 3200;

/** Bandwidth (bytes per second) and latency (seconds) for each group of ranks of the layout. */
export function networkOf(l: LayoutInput, gpu: Gpu, k: Constants): Network {
  const smddp = l.collectives === 'smddp';
  const slower = Math.sqrt(REFERENCE_GBPS / l.networkGbps);
  const domain = domainGpusOf(l) / l.gpusPerNode;
  return {
    linkBytesPerSecond: gpu.linkBytesPerSecond,
    nodeBytesPerSecond: ((domain * l.networkGbps) / 8) * 1e9 * k.wireEfficiency * (smddp ? SMDDP_WIRE_GAIN : 1),
    gpusPerNode: l.gpusPerNode * domain,
    latencyInside: k.latencyInside,
    latencyAcross: k.latencyAcross * slower,
    latencyPerNode: smddp ? 0 : k.latencyPerNode * slower,
    lossPerNode: l.stack === 'deepspeed' || l.stack === 'megatron-legacy' ? k.gatherLossPerNode : 0,
    crowding: 0,
  };
}

/** Seconds of an AllGather or ReduceScatter of `bytes` (total over the group); groups on the same node share its interfaces. */
export function gatherSeconds(bytes: number, group: Group, net: Network): number {
  if (group.size <= 1) return 0;
  const inside = group.perNode > 1 ? (((group.perNode - 1) / group.perNode) * bytes) / net.linkBytesPerSecond : 0;
  // A ring has as many hops as ranks; the half time was fitted to rings of eight.
  const hops = Math.max(1, group.perNode / 8);
  if (group.nodes <= 1) return saturated(inside, net.latencyInside * hops);
  const share = net.nodeBytesPerSecond * (group.perNode / net.gpusPerNode);
  const across = (((group.nodes - 1) / group.nodes) * bytes * (1 + net.lossPerNode * (group.nodes - 1))) / share;
  const crowded = across * group.size ** net.crowding;
  return saturated(Math.max(inside, crowded), net.latencyAcross + net.latencyPerNode * (group.nodes - 1));
}

/** An AllReduce is a ReduceScatter and an AllGather. */
export const reduceSeconds = (bytes: number, group: Group, net: Network) => 2 * gatherSeconds(bytes, group, net);

/** Seconds for sending `bytes` from one neighbour to the next; `nodeHop` if they are on different nodes. */
export function sendSeconds(bytes: number, nodeHop: boolean, net: Network): number {
  const rate = nodeHop
    ? Math.min(net.nodeBytesPerSecond / net.gpusPerNode, net.linkBytesPerSecond)
    : net.linkBytesPerSecond;
  return bytes / rate + (nodeHop ? 15e-6 : 5e-6);
}

/** Time that communication adds to the work that it overlaps with: the exposed part, and a slowdown of both while they share the GPU. */
export const added = (work: number, communication: number, tax: number) =>
  Math.max(0, communication - work) + tax * Math.min(work, communication);

/** Number of ranks that hold the shards of one replica: data-parallel and context ranks together. */
export const shardGroupSize = (l: LayoutInput) => l.shard * l.context;

/** Bytes per gradient that FSDP and ZeRO-3 reduce-scatter; the built-in trainer sums in fp32 under FSDP. */
export function reduceBytesOf(l: LayoutInput, k: Constants): number {
  if (l.stack === 'deepspeed' || l.precision === 'bf16-pure' || l.stack === 'jax') return 2;
  return l.isOwnTrainer ? 4 : k.reduceBytes;
}

/** How often the gradients of a step are summed over replicas. */
export const sumsOfStep = (l: LayoutInput): number => (l.isFsdp1 && !l.noSync ? microBatchesOf(l) : 1);

/**
 * Communication of one rank for one block's parameters and gradients in a step; a test compares the counts with the trainer's own calls.
 * ZeRO-3 and FSDP gather each block's parameters twice and reduce-scatter its gradients in every micro-batch; replicas sum theirs once per
 * step. With no_sync, parameters stay gathered from one backward pass to the next forward pass, and gradients are reduce-scattered once.
 * With `keepsGathered`, parameters stay gathered from a forward pass to its backward pass.
 */
export function shardTraffic(l: LayoutInput) {
  const parameters = layerParametersOfRank(l.model, l.tensor, expertTensorOf(l) * l.expert);
  const micro = microBatchesOf(l);
  const isSharded = l.zeroStage === 3 && shardGroupSize(l) > 1;
  const once = l.noSync ? 1 : micro;
  const forwardGathers = keepsGatheredUntilForward(l) ? 1 : micro;
  return {
    /** Of the block before sharding, and those that have gradients. */
    parameters,
    trained: l.adapters === undefined ? parameters : adaptersOfBlock(l),
    /** Number of AllGathers of all micro-batches, how many of them precede a forward pass, and the bytes of each. */
    gathers: isSharded ? forwardGathers + (l.keepsGathered ? 0 : micro) : 0,
    forwardGathers: isSharded ? forwardGathers : 0,
    // Of the same size, for a reference's forward passes (DPO). A reference without adapters shares its parameters with the model, which
    // keeps them gathered.
    referenceGathers: isSharded && l.preferences && !(l.keepsGathered && l.preferences === 'adapters') ? micro : 0,
    gatheredBytes: storedBytes(elementBytesOf(l), parameters + adaptersOfBlock(l), quantizedOfBlock(l)),
    /** Number of ReduceScatters of gradients, and of AllReduces over replicas, of the rank's own shard. */
    scatters: isSharded ? once : 0,
    replicaSums: l.replicate > 1 ? sumsOfStep(l) : 0,
  };
}

/** Collectives of one kind in one block and micro-batch, forward and backward: their number, and the total bytes of each over all ranks. */
type ActivationTraffic = Record<'gathers' | 'scatters' | 'bytes', number>;

/**
 * Two AllReduces forward and two backward, each as an AllGather and a ReduceScatter with sequence parallelism. A recomputed block gathers
 * and scatters again; PyTorch stops recomputing before the block's last ReduceScatter, which only a norm after it would need, and its
 * per-operation checkpointing keeps the results of ReduceScatters (a test counts both on the trainer).
 */
export function tensorTraffic(l: LayoutInput): ActivationTraffic {
  const bytes = elementBytesOf(l) * tokensPerRank(l) * l.model.hidden;
  if (l.tensor === 1) return { gathers: 0, scatters: 0, bytes };
  const again = { none: 0, full: 2, block: 1, op: 1, products: 1, core: 0 }[l.recompute];
  if (!l.isOwnTrainer) return { gathers: 4 + again, scatters: 4 + again, bytes };
  const scattersAgain = l.normsBehind ? 2 : 1;
  return { gathers: l.recompute === 'none' ? 4 : 6, scatters: l.recompute === 'full' ? 4 + scattersAgain : 4, bytes };
}

/**
 * Keys and values of a sequence, passed around a ring or gathered: once forward, their gradients once backward, and once more to compute
 * the gradients of attention. The built-in trainer gathers, and keeps the result unless the block is recomputed.
 */
export function contextTraffic(l: LayoutInput): ActivationTraffic {
  const bytes = (elementBytesOf(l) * tokensPerRank(l) * l.context * l.model.kvHeads * meanHeadSize(l.model)) / l.tensor;
  if (l.context === 1) return { gathers: 0, scatters: 0, bytes };
  const keeps = l.isOwnTrainer && l.recompute === 'none';
  return { gathers: keeps ? 2 : 4, scatters: 2, bytes };
}

/**
 * Tokens to their experts and back, forward and backward, and once more if the built-in trainer recomputes the block. `bytes`: the copies
 * that one rank sends in one exchange, one for each expert of a token.
 */
export function expertTraffic(l: LayoutInput): { exchanges: number; bytes: number } {
  const bytes = (elementBytesOf(l) * tokensPerRank(l) * l.model.expertsPerToken * expertHiddenOf(l.model)) / l.tensor;
  // In models with both kinds of blocks, those without experts send nothing.
  if (l.expert === 1 || l.model.experts === 1) return { exchanges: 0, bytes };
  return { exchanges: l.isOwnTrainer && l.recompute !== 'none' ? 6 : 4, bytes };
}
