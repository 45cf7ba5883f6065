import type { Constants } from '../constants';
import type { Gpu } from '../gpu';
import { expertTensorOf, type LayoutInput, microBatchesOf } from '../layout';
import { kindsOf } from '../model-size';
import { type BlockSeconds, blockSeconds, GEMMS_PER_BLOCK, tokensPerRank } from './compute';
import {
  added,
  contextTraffic,
  expertTraffic,
  gatherSeconds,
  groupOf,
  type Network,
  reduceBytesOf,
  reduceSeconds,
  sendSeconds,
  shardGroupSize,
  shardTraffic,
  tensorTraffic,
} from './network';

/** Share of a block's forward pass that is computed again in the backward pass. */
const RECOMPUTED: Readonly<Record<LayoutInput['recompute'], { products: number; core: number; traffic: number }>> = {
  none: { products: 0, core: 0, traffic: 0 },
  full: { products: 1, core: 1, traffic: 1 },
  block: { products: 0.5, core: 0.5, traffic: 0.5 },
  op: { products: 0.5, core: 0, traffic: 1 },
  products: { products: 0, core: 0, traffic: 1 },
  core: { products: 0, core: 1, traffic: 0 },
};

/** A compiler reads what it recomputes between products in the kernels that need it: H200, docs/evidence/2026-11-23-h200.md. */
const recomputedOf = (l: LayoutInput) =>
  l.recompute === 'products' && l.kernels === 'compiled' ? RECOMPUTED.none : RECOMPUTED[l.recompute];

/** Seconds of one block for one micro-batch, forward and backward; communication as far as it is not hidden. */
export type Block = Record<
  | 'matmul'
  | 'attention'
  | 'elementwise'
  | 'recompute'
  | 'tensorParallel'
  | 'contextParallel'
  | 'expertParallel'
  | 'dataParallel'
  | 'offload'
  | 'host',
  number
>;

/** One block for one micro-batch, forward and backward, including its exposed communication; the mean if blocks differ. */
export function blockOf(l: LayoutInput, gpu: Gpu, net: Network, k: Constants): Block {
  const kinds = kindsOf(l).map(({ share, layout }) => ({ share, block: blockOfKind(layout, gpu, net, k) }));
  const [first] = kinds;
  if (kinds.length === 1 && first) return first.block;
  const parts = Object.keys(first?.block ?? {}) as (keyof Block)[];
  const mean = parts.map((part) => [part, kinds.reduce((sum, { share, block }) => sum + share * block[part], 0)]);
  return Object.fromEntries(mean) as unknown as Block;
}

type Passes = Record<'forward' | 'backward', number>;

function blockOfKind(l: LayoutInput, gpu: Gpu, net: Network, k: Constants): Block {
  const b = blockSeconds(l, gpu, k);
  const again = recomputedOf(l);
  // Frozen weights have no weight gradient: the backward pass computes only that of the inputs.
  const matmul = (l.adapters === undefined ? 3 : 2) * b.gemmForward;
  const attention = b.attentionForward + b.attentionBackward;
  const elementwise = 3 * b.trafficForward;
  // Megatron-Core keeps the tokens of experts, which are inputs of products.
  const permuted = l.recompute === 'products' && l.stack === 'megatron' ? b.permutationForward : 0;
  const traffic = again.traffic * (b.trafficForward - permuted);
  const recompute = again.products * b.gemmForward + again.core * b.attentionForward + traffic;
  const tensorParallel = tensorSeconds(l, net, k);
  const contextParallel = contextSeconds(l, net, k, b.attentionForward);
  const forward = b.gemmForward + b.attentionForward + b.trafficForward + tensorParallel / 3 + contextParallel / 3;
  const backward = matmul + attention + elementwise + recompute + tensorParallel + contextParallel - forward;
  // A pass takes at least as long as launching its kernels.
  const expertParallel = exposedExpertSeconds(l, k, expertSeconds(l, net), forward + backward);
  const idleForward = Math.max(0, b.launchForward - forward - expertParallel / 2);
  const idleBackward = Math.max(0, (2 + again.traffic) * b.launchForward - backward - expertParallel / 2);
  const passes = { forward: forward + idleForward, backward: backward + idleBackward };
  const reference = referenceOf(l, net, k, b);
  return {
    expertParallel,
    matmul: matmul + reference.matmul,
    attention: attention + reference.attention,
    elementwise: elementwise + reference.elementwise,
    recompute,
    tensorParallel,
    contextParallel,
    dataParallel: shardSeconds(l, net, k, passes) + reference.dataParallel,
    offload: activationOffloadSeconds(l, gpu, passes),
    host: idleForward + idleBackward + reference.host,
  };
}

const NO_REFERENCE = { matmul: 0, attention: 0, elementwise: 0, dataParallel: 0, host: 0 };

/** A reference's forward pass (DPO) through one block, which gathers its shards once: layouts with a reference have no tensor ranks. */
function referenceOf(l: LayoutInput, net: Network, k: Constants, b: BlockSeconds): typeof NO_REFERENCE {
  if (!l.preferences) return NO_REFERENCE;
  const busy = b.gemmForward + b.attentionForward + b.trafficForward;
  const host = Math.max(0, b.launchForward - busy);
  const traffic = shardTraffic(l);
  const gather = traffic.referenceGathers > 0 ? gatherSeconds(traffic.gatheredBytes, shardGroup(l, net), net) : 0;
  return {
    matmul: b.gemmForward,
    attention: b.attentionForward,
    elementwise: b.trafficForward,
    dataParallel: added(busy + host, gather, overlapTax(l, k)),
    host,
  };
}

const shardGroup = (l: LayoutInput, net: Network) => groupOf(shardGroupSize(l), l.tensor, net.gpusPerNode);

/** An AllGather and a ReduceScatter together take as long as the AllReduce that they replace. */
function tensorSeconds(l: LayoutInput, net: Network, k: Constants): number {
  const { gathers, scatters, bytes } = tensorTraffic(l);
  if (gathers === 0) return 0;
  const group = groupOf(l.tensor, 1, net.gpusPerNode);
  const one = reduceSeconds(bytes, group, net);
  const engine = l.stack === 'megatron-legacy' && l.zeroStage > 0;
  const exposed = l.overlapsTensor ? k.tensorExposed : engine ? k.tensorExposedEngine : k.tensorExposedLegacy;
  const gap = l.overlapsTensor ? 0 : k.tensorGapSeconds;
  return ((gathers + scatters) / 2) * (one * exposed + gap);
}

/** Keys and values together, overlapped with attention on those that are already local. */
function contextSeconds(l: LayoutInput, net: Network, k: Constants, attentionForward: number): number {
  const { gathers, scatters, bytes } = contextTraffic(l);
  if (gathers === 0) return 0;
  const away = (2 * bytes * (l.context - 1)) / l.context;
  const nodeHop = l.tensor * l.context > net.gpusPerNode;
  const ring = sendSeconds(away, nodeHop, net);
  return ((gathers + scatters) / 2) * added(attentionForward, ring, k.contextExposed);
}

/**
 * Each rank keeps the tokens whose experts are local; transfers to other nodes overlap with those inside the node. If a token is sent once
 * to each node that has experts for it, it is distributed further there.
 */
function expertSeconds(l: LayoutInput, net: Network): number {
  const { exchanges, bytes } = expertTraffic(l);
  if (exchanges === 0) return 0;
  const group = groupOf(l.expert, expertTensorOf(l), net.gpusPerNode);
  const inside = sendSeconds(
    (bytes * (group.perNode - 1)) / (l.sendsOncePerNode ? group.perNode : group.size),
    false,
    net,
  );
  if (group.nodes === 1) return exchanges * inside;
  const copies = l.model.expertsPerToken;
  const nodesMet = group.nodes * (1 - (1 - 1 / group.nodes) ** copies);
  const sent = (l.sendsOncePerNode ? nodesMet / copies : 1) * (1 - 1 / group.nodes);
  return exchanges * Math.max(inside, sendSeconds(bytes * sent, true, net));
}

/** What the passes of another micro-batch do not hide of a block's exchanges; one micro-batch of a step has no other beside it. */
function exposedExpertSeconds(l: LayoutInput, k: Constants, exchanged: number, passes: number): number {
  if (!l.overlapsExperts) return exchanged;
  const alone = 1 / microBatchesOf(l);
  return alone * exchanged + (1 - alone) * added(passes, exchanged, k.overlapCost);
}

/**
 * Before DeepSpeed 0.5.9 (January 2022), ZeRO-3 gathered the weights of each product by themselves, waited for them, and summed gradients by
 * AllReduce (https://github.com/deepspeedai/DeepSpeed/issues/1069, /issues/1173 and /pull/1453).
 */
const gathersEachWeight = (l: LayoutInput) => l.stack === 'deepspeed' && !l.prefetchesShards;

/**
 * AllGathers and ReduceScatters of one micro-batch, less the part hidden by the passes; a ReduceScatter that happens once per step is
 * divided among the micro-batches.
 */
function shardSeconds(l: LayoutInput, net: Network, k: Constants, { forward, backward }: Passes): number {
  const traffic = shardTraffic(l);
  if (traffic.gathers === 0) return 0;
  const group = shardGroup(l, net);
  const [parts, sums] = gathersEachWeight(l) ? [GEMMS_PER_BLOCK, 2] : [1, 1];
  const gather = parts * gatherSeconds(traffic.gatheredBytes / parts, group, net);
  const scatter = sums * gatherSeconds(reduceBytesOf(l, k) * traffic.trained, group, net);
  const tax = overlapTax(l, k);
  const micro = microBatchesOf(l);
  const inForward = traffic.forwardGathers * gather;
  const inBackward = (traffic.gathers - traffic.forwardGathers) * gather + traffic.scatters * scatter;
  return added(forward, inForward / micro, tax) + added(backward, inBackward / micro, tax);
}

/** SMDDP's AllGather uses fewer than 9 streaming multiprocessors instead of 24, as AWS reports, and leaves the others to the products. */
const SMDDP_TAX = 9 / 24;

function overlapTax(l: LayoutInput, k: Constants): number {
  if (!l.prefetchesShards) return 1;
  const tax = l.stack === 'deepspeed' ? k.deepspeedOverlapCost : k.overlapCost;
  return l.collectives === 'smddp' && l.nodes > 1 ? tax - (1 - SMDDP_TAX) * Math.min(tax, k.overlapCost) : tax;
}

/** Block inputs are copied to the host in the forward pass and back in the backward pass. */
function activationOffloadSeconds(l: LayoutInput, gpu: Gpu, { forward, backward }: Passes): number {
  if (!l.offloadActivations) return 0;
  const seconds = (2 * tokensPerRank(l) * l.model.hidden) / l.tensor / gpu.hostBytesPerSecond;
  return added(forward, seconds, 0.1) + added(backward, seconds, 0.1);
}
