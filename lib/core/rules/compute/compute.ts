import {
  acceleratorCount,
  findInstanceType,
  hasLocalNvme,
  nearestInstanceTypes,
} from '../../catalog/instances/instances';
import { orList } from '../../config/issue';
import { instanceGroupsOf } from '../../config/resolve-run';
import { api, type Finding, guide, type Rule, when } from '../../config/rule';
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
  {
    id: 'compute/form',
    level: 'error',
    what: 'A cluster is either one instance type with a count, or a list of instance groups.',
    why: 'The API accepts only one of the two.',
    source: api('ResourceConfig'),
    check: oneForm,
  },
  {
    id: 'compute/instance-type',
    level: 'error',
    isLocal: true,
    what: 'SageMaker training supports every instance type of the run.',
    why: 'CreateTrainingJob rejects other instance types.',
    source: api('ResourceConfig'),
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
  {
    id: 'compute/group-names',
    level: 'error',
    isLocal: true,
    what: 'Group names are unique.',
    why: 'Channels and the distribution refer to groups by name.',
    source: api('InstanceGroup'),
    check: groupNames,
  },
  {
    id: 'compute/training-plan',
    level: 'error',
    what: 'trainingPlan requires capacity training-plan and an instance type for which training plans are sold.',
    why: 'Otherwise the job would wait or be rejected.',
    source: guide('training-plan-utilization-for-training-jobs'),
    check: trainingPlan,
  },
  {
    id: 'compute/alternatives',
    level: 'error',
    what: 'Alternatives are sent as InstancePreferences: at most five types, on-demand or training plans, without instance groups.',
    why: 'SageMaker does not support other combinations.',
    source: api('ResourceConfig'),
    check: alternatives,
  },
  {
    id: 'compute/volume',
    level: 'error',
    what: 'An EBS volume size applies only to instance types without local NVMe storage.',
    why: 'Instance types with local NVMe storage have no EBS volume and ignore the size.',
    source: api('ResourceConfig'),
    check: volume,
  },
  {
    id: 'compute/mixed-storage',
    level: 'warning',
    what: 'Either every instance type of a run has local NVMe storage, or none.',
    why: 'A type with local NVMe storage rejects the key that the environment requires for the EBS volumes of the other types.',
    source: api('ResourceConfig'),
    check: mixedStorage,
  },
  {
    id: 'compute/training-plan-region',
    level: 'error',
    what: 'The training plan is in the region of the run.',
    why: 'The capacity of a plan is in one Availability Zone of its region.',
    source: guide('reserve-capacity-with-training-plans'),
    check: trainingPlanRegion,
  },
  {
    id: 'compute/foreign-training-plan',
    level: 'error',
    what: 'A training plan that was bought for one team is used by its runs alone.',
    why: 'A plan has a fixed number of instances, which a run of another team would occupy.',
    source: 'docs/reference/environment-file.md',
    check: foreignTrainingPlan,
  },
  {
    id: 'compute/volume-beyond-quota',
    level: 'warning',
    what: 'A volume above 1024 GiB requires a quota increase.',
    why: 'The default of L-C5A266EB is 1,024 GiB.',
    source: guide('regions-quotas'),
    check: ({ compute }) =>
      when((compute.volumeSizeGiB ?? 0) > 1024 && (compute.volumeSizeGiB ?? 0) <= 16_384, {
        path: 'compute.volumeSizeGiB',
        must: 'must be within the quota on EBS volumes (1024 GiB by default)',
        got: compute.volumeSizeGiB,
        fix: 'check it with slipway quota',
      }),
  },
  {
    id: 'compute/warm-pool',
    level: 'error',
    what: 'Warm pools require a single on-demand instance type.',
    why: 'Spot jobs and heterogeneous clusters keep no warm pool; for training plans this is not documented.',
    source: guide('train-warm-pools'),
    check: warmPool,
  },
  {
    id: 'compute/ultraserver',
    level: 'warning',
    what: 'ml.p6e-gb200.36xlarge is sold as whole UltraServers of 18 instances; a training plan reserves one of them as a spare by default.',
    why: 'With other counts, instances are billed but idle.',
    source: api('CreateTrainingPlan'),
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
    what: 'ml.p2 types are deprecated.',
    why: 'Images with PyTorch 1.13 or later do not run on these types.',
    source: 'aws/sagemaker-python-sdk v2.257.6 image_uris.py',
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
    what: 'With launcher script, a host with several accelerators runs only one process.',
    why: 'Launcher script starts one process per host; the other accelerators stay idle.',
    source: guide('distributed-training-get-started'),
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
