import { commonDivisor } from '../../distribution/ultra-servers';
import type { Constants } from '../constants';
import type { Gpu } from '../gpu';
import { domainGpusOf, type LayoutInput } from '../layout';

/** Where the members of one communication group sit. A node here is what NVLink joins: an instance, or the instances of an UltraServer. */
export interface Group {
  size: number;
  /** Members on one node. */
  perNode: number;
  nodes: number;
}

/**
 * A group of `size` ranks that are `stride` ranks apart; ranks fill one node after the other. Where nodes hold no whole number of groups, it is
 * one of those that lie on two, with its fewest members together: all groups wait for it.
 */
export function groupOf(size: number, stride: number, gpusPerNode: number): Group {
  const span = size * stride;
  if (span <= gpusPerNode && gpusPerNode % span !== 0) {
    return { size, perNode: Math.max(1, Math.floor(commonDivisor(span, gpusPerNode) / stride)), nodes: 2 };
  }
  const perNode = Math.max(1, Math.min(size, Math.floor(gpusPerNode / stride)));
  return { size, perNode, nodes: Math.ceil(size / perNode) };
}

/** Hill exponent of NCCL's bandwidth over message size: 0.68 to 0.91 in the published nccl-tests curves. */
const HILL = 0.75;

/** Seconds that moving at full bandwidth would take, lengthened for small messages: `half` is the time at which half the bandwidth is reached. */
function saturated(seconds: number, half: number): number {
  if (seconds <= 0) return 0;
  return seconds * (1 + (half / seconds) ** HILL);
}

/** Speeds of one cluster as collectives see them. */
export interface Network {
  linkBytesPerSecond: number;
  /** One node, or one UltraServer: all its interfaces, wire efficiency counted. */
  nodeBytesPerSecond: number;
  /** GPUs that NVLink joins. */
  gpusPerNode: number;
  latencyInside: number;
  latencyAcross: number;
  latencyPerNode: number;
  /** How much slower a gather gets with each node beyond the first. */
  lossPerNode: number;
  /** The same as a power of the ranks in the ring, where all groups of a cluster move their bytes at one moment: each hop may be the slow one. */
  crowding: number;
}

/**
 * SMDDP AllGather moves data peer to peer over EFA, so that its latency does not grow with the ring; AWS reports about 90 % of the
 * line rate against 80 % of NCCL on ml.p4d.24xlarge (https://aws.amazon.com/blogs/machine-learning/enable-faster-training-with-amazon-sagemaker-data-parallel-library/).
 */
const SMDDP_WIRE_GAIN = 0.9 / 0.8;

/**
 * Half of the bandwidth is reached at messages of 1.0 ms on p4de and 0.36 ms on p5, whose network is eight times as fast
 * (nccl-tests of awslabs/awsome-distributed-ai, two nodes): latency goes with the square root.
 */
const REFERENCE_GBPS = 3200;

/** Bandwidth in bytes a second and latency in seconds of each group of ranks of the layout. */
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

/** Seconds of an AllGather or ReduceScatter of `bytes` gathered over the group; groups that share a node share its interfaces. */
export function gatherSeconds(bytes: number, group: Group, net: Network): number {
  if (group.size <= 1) return 0;
  const inside = group.perNode > 1 ? (((group.perNode - 1) / group.perNode) * bytes) / net.linkBytesPerSecond : 0;
  // A ring has as many hops as ranks: the half time was fitted to rings of eight.
  const hops = Math.max(1, group.perNode / 8);
  if (group.nodes <= 1) return saturated(inside, net.latencyInside * hops);
  const share = net.nodeBytesPerSecond * (group.perNode / net.gpusPerNode);
  const across = (((group.nodes - 1) / group.nodes) * bytes * (1 + net.lossPerNode * (group.nodes - 1))) / share;
  const crowded = across * group.size ** net.crowding;
  return saturated(Math.max(inside, crowded), net.latencyAcross + net.latencyPerNode * (group.nodes - 1));
}

/** AllReduce: a ReduceScatter and an AllGather. */
export const reduceSeconds = (bytes: number, group: Group, net: Network) => 2 * gatherSeconds(bytes, group, net);

/** Seconds of one neighbour sending `bytes` to the next, `nodeHop` when they are on different nodes. */
export function sendSeconds(bytes: number, nodeHop: boolean, net: Network): number {
  const rate = nodeHop
    ? Math.min(net.nodeBytesPerSecond / net.gpusPerNode, net.linkBytesPerSecond)
    : net.linkBytesPerSecond;
  return bytes / rate + (nodeHop ? 15e-6 : 5e-6);
}
