import {
  acceleratorCount,
  findInstanceType,
  hasLocalNvme,
  nearestInstanceTypes,
} from '../../catalog/instances/instances';
import { orList } from '../../config/issue';
import { instanceGroupsOf } from '../../config/resolve-run';
import { type Rule, rule, when } from '../../config/rule';
import { alternatives, foreignTrainingPlan, trainingPlan, trainingPlanRegion, warmPool } from './capacity';
import { groupNames, mixedStorage, namedTypes, oneForm } from './types';

/** Instances of an UltraServer u-p6e-gb200x72 that a training plan can use: without its spare instance, and all. */
const ULTRASERVER = [17, 18];
const fillsUltraServers = (count: number): boolean => ULTRASERVER.some((instances) => count % instances === 0);

/** Rules for instance types, counts and capacity of training runs. */
export const COMPUTE_RULES: readonly Rule[] = [
  rule('compute/form', 'error', oneForm),
  rule('compute/instance-type', 'error, local', (run) =>
    namedTypes(run)
      .filter(({ type }) => !findInstanceType(type))
      .map(({ path, type }) => ({
        path,
        must: 'must be a SageMaker training instance type',
        fix: `use for example ${orList(nearestInstanceTypes(type))}`,
      })),
  ),
  rule('compute/group-names', 'error, local', groupNames),
  rule('compute/training-plan', 'error', trainingPlan),
  rule('compute/alternatives', 'error', alternatives),
  rule('compute/volume', 'error', ({ compute }) => {
    const types = instanceGroupsOf(compute).map((g) => g.instanceType);
    const [nvme] = types;
    if (compute.volumeSizeGiB === undefined) return [];
    return [
      // The groups without local NVMe need the volume, which the other groups ignore.
      ...when(types.every(hasLocalNvme), 'compute.volumeSizeGiB', {
        level: 'warning',
        must: `must not be given for ${nvme}: it has ${findInstanceType(nvme ?? '')?.localNvmeGB} GB of local NVMe and no EBS volume`,
        fix: 'remove it',
      }),
      ...when(compute.volumeSizeGiB > 16_384, 'compute.volumeSizeGiB', {
        must: 'must be at most 16384',
        fix: 'use a channel for the remaining data',
      }),
    ];
  }),
  rule('compute/mixed-storage', 'warning', mixedStorage),
  rule('compute/training-plan-region', 'error', trainingPlanRegion),
  rule('compute/foreign-training-plan', 'error', foreignTrainingPlan),
  rule('compute/volume-beyond-quota', 'warning', ({ compute }) =>
    when((compute.volumeSizeGiB ?? 0) > 1024 && (compute.volumeSizeGiB ?? 0) <= 16_384, 'compute.volumeSizeGiB', {
      must: 'must be within the quota on EBS volumes (1024 GiB by default)',
      fix: 'check it with slipway quota',
    }),
  ),
  rule('compute/warm-pool', 'error', warmPool),
  rule('compute/ultraserver', 'warning', ({ compute }) =>
    when(
      compute.instanceType === 'ml.p6e-gb200.36xlarge' && !fillsUltraServers(compute.instanceCount),
      'compute.instanceCount',
      {
        must: 'must be a multiple of 17 (one spare instance of each UltraServer, the default of a training plan) or of 18 for ml.p6e-gb200.36xlarge',
        fix: 'use 17, or 18 with a plan that was created with SpareInstanceCountPerUltraServer 0',
      },
    ),
  ),
  rule('compute/legacy-type', 'warning, local', (run) =>
    namedTypes(run)
      .filter(({ type }) => type.startsWith('ml.p2.'))
      .map(({ path }) => ({ path, must: 'must be a type with current images', fix: 'use ml.g5 or newer' })),
  ),
  rule('compute/idle-accelerators', 'warning', (run) =>
    when(
      run.kind === 'training' &&
        run.distribution.launcher === 'script' &&
        acceleratorCount(run.compute.instanceType) > 1 &&
        run.code.entryPoint.endsWith('.py'),
      'distribution.launcher',
      {
        must: `must start ${acceleratorCount(run.compute.instanceType)} processes to use every accelerator, unless the script does`,
        fix: 'use torchrun',
      },
    ),
  ),
];
