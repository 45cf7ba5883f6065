import {
  acceleratorCount,
  findInstanceType,
  hasLocalNvme,
  nearestInstanceTypes,
} from '../../catalog/instances/instances';
import { orList } from '../../config/issue';
import { instanceGroupsOf } from '../../config/resolve-run';
import { type Finding, type Rule, when } from '../../config/rule';
import type { RunSpec } from '../../config/run-spec';
import { alternatives, foreignTrainingPlan, trainingPlan, trainingPlanRegion, warmPool } from './capacity';
import { groupNames, mixedStorage, namedTypes, oneForm } from './types';

function volume({ compute }: RunSpec): Finding[] {
  const types = instanceGroupsOf(compute).map((g) => g.instanceType);
  const [nvme] = types;
  if (compute.volumeSizeGiB === undefined) return [];
  return [
    // The groups without local NVMe need the volume, which the other groups ignore.
    ...when(types.every(hasLocalNvme), {
      path: 'compute.volumeSizeGiB',
      level: 'warning',
      must: `must not be given for ${nvme}: it has ${findInstanceType(nvme ?? '')?.localNvmeGB} GB of local NVMe and no EBS volume`,
      got: compute.volumeSizeGiB,
      fix: 'remove it',
    }),
    ...when(compute.volumeSizeGiB > 16_384, {
      path: 'compute.volumeSizeGiB',
      must: 'must be at most 16384',
      got: compute.volumeSizeGiB,
      fix: 'use a channel for the remaining data',
    }),
  ];
}

/** Instances of an UltraServer u-p6e-gb200x72 that a training plan can use: without its spare instance, and all. */
const ULTRASERVER = [17, 18];
const fillsUltraServers = (count: number): boolean => ULTRASERVER.some((instances) => count % instances === 0);

/** Rules for instance types, counts and capacity of training runs. */
export const COMPUTE_RULES: readonly Rule[] = [
  { id: 'compute/form', level: 'error', check: oneForm },
  {
    id: 'compute/instance-type',
    level: 'error',
    isLocal: true,
    check: (run) =>
      namedTypes(run)
        .filter(({ type }) => !findInstanceType(type))
        .map(({ path, type }) => ({
          path,
          must: 'must be a SageMaker training instance type',
          got: type,
          fix: `use for example ${orList(nearestInstanceTypes(type))}`,
        })),
  },
  { id: 'compute/group-names', level: 'error', isLocal: true, check: groupNames },
  { id: 'compute/training-plan', level: 'error', check: trainingPlan },
  { id: 'compute/alternatives', level: 'error', check: alternatives },
  { id: 'compute/volume', level: 'error', check: volume },
  { id: 'compute/mixed-storage', level: 'warning', check: mixedStorage },
  { id: 'compute/training-plan-region', level: 'error', check: trainingPlanRegion },
  { id: 'compute/foreign-training-plan', level: 'error', check: foreignTrainingPlan },
  {
    id: 'compute/volume-beyond-quota',
    level: 'warning',
    check: ({ compute }) =>
      when((compute.volumeSizeGiB ?? 0) > 1024 && (compute.volumeSizeGiB ?? 0) <= 16_384, {
        path: 'compute.volumeSizeGiB',
        must: 'must be within the quota on EBS volumes (1024 GiB by default)',
        got: compute.volumeSizeGiB,
        fix: 'check it with slipway quota',
      }),
  },
  { id: 'compute/warm-pool', level: 'error', check: warmPool },
  {
    id: 'compute/ultraserver',
    level: 'warning',
    check: ({ compute }) =>
      when(compute.instanceType === 'ml.p6e-gb200.36xlarge' && !fillsUltraServers(compute.instanceCount), {
        path: 'compute.instanceCount',
        must: 'must be a multiple of 17 (one spare instance of each UltraServer, the default of a training plan) or of 18 for ml.p6e-gb200.36xlarge',
        got: compute.instanceCount,
        fix: 'use 17, or 18 with a plan that was created with SpareInstanceCountPerUltraServer 0',
      }),
  },
  {
    id: 'compute/legacy-type',
    level: 'warning',
    isLocal: true,
    check: (run) =>
      namedTypes(run)
        .filter(({ type }) => type.startsWith('ml.p2.'))
        .map(({ path, type }) => ({
          path,
          must: 'must be a type with current images',
          got: type,
          fix: 'use ml.g5 or newer',
        })),
  },
  {
    id: 'compute/idle-accelerators',
    level: 'warning',
    check: (run) =>
      when(
        run.kind === 'training' &&
          run.distribution.launcher === 'script' &&
          acceleratorCount(run.compute.instanceType) > 1 &&
          run.code.entryPoint.endsWith('.py'),
        {
          path: 'distribution.launcher',
          must: `must start ${acceleratorCount(run.compute.instanceType)} processes to use every accelerator, unless the script does`,
          got: 'script',
          fix: 'use torchrun',
        },
      ),
  },
];
