import { findInstanceType } from '../catalog/instances/instances';
import { hostCount, trainingGroupsOf } from '../config/resolve-run';
import type { RunSpec } from '../config/run-spec';

/** Greatest common divisor of two positive whole numbers. */
export function commonDivisor(a: number, b: number): number {
  return b === 0 ? a : commonDivisor(b, a % b);
}

/**
 * Number of instances of a cluster that are on one UltraServer, so that NVLink connects their GPUs: as set by the placement; otherwise
 * whole UltraServers of 18 instances, or of the 17 that remain in a training plan besides its spare instance; otherwise the number that
 * every possible division supports. For unequal parts, their common divisor. 1 for other types.
 * https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_PlacementSpecification.html, 2026-11-23.
 */
export function domainNodesOf(instanceType: string, nodes: number, placement: RunSpec['compute']['placement']): number {
  const whole = findInstanceType(instanceType)?.accelerator?.ultraServerInstances;
  if (whole === undefined) return 1;
  const parts = placement?.ultraServers?.map(({ instanceCount }) => instanceCount) ?? [];
  if (parts.length > 0) {
    const rest = nodes - parts.reduce((sum, part) => sum + part, 0);
    return [...parts, ...(rest > 0 ? [rest] : [])].reduce(commonDivisor);
  }
  if (nodes <= whole) return nodes;
  return [whole, whole - 1].find((instances) => nodes % instances === 0) ?? commonDivisor(nodes, whole);
}

/** Number of hosts of a run whose GPUs are connected by NVLink: 1 except on UltraServers. */
export function hostsOfDomain(run: RunSpec): number {
  const groups = trainingGroupsOf(run);
  const [first] = groups;
  return groups.length === 1 && first ? domainNodesOf(first.instanceType, hostCount(groups), run.compute.placement) : 1;
}
