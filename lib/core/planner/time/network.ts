import { commonDivisor } from '../../distribution/ultra-servers';
import type { Constants } from '../constants';
import type { Gpu } from '../gpu';
import { domainGpusOf, type LayoutInput } from '../layout';

/**
 * Placement of the members of one communication group. A node here is an NVLink domain: an instance, or the instances of an UltraServer.
 */
export interface Group {
  size: number;
  /** Number of members per node. */
  perNode: number;
  nodes: number;
}

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

/** Speeds of one cluster for collectives. */
export interface Network {
  linkBytesPerSecond: number;
  /** All interfaces of one node or UltraServer together, after wire efficiency. */
  nodeBytesPerSecond: number;
  /** GPUs connected by NVLink. */
  gpusPerNode: number;
  latencyInside: number;
  latencyAcross: number;
  latencyPerNode: number;
  /** Relative slowdown of a gather with each node beyond the first. */
  lossPerNode: number;
  /**
   * The same as an exponent of the number of ranks in the ring, when all groups of a cluster communicate at the same time and any hop may
   * be the slow one.
   */
  crowding: number;
}

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
