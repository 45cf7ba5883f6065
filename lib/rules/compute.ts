import { acceleratorCount, findInstanceType, nearestInstanceTypes } from '../catalog/instances';
import { orList } from '../spec/issue';
import { instanceGroupsOf } from '../spec/resolve-run';
import type { RunSpec } from '../spec/run-spec';
import { api, type Finding, guide, type Rule, when } from './rule';

/** Every place of the file that names an instance type. */
function namedTypes(run: RunSpec): { path: string; type: string }[] {
  const { compute } = run;
  return [
    ...(compute.instanceType === '' ? [] : [{ path: 'compute.instanceType', type: compute.instanceType }]),
    ...compute.instanceGroups.map((g, i) => ({
      path: `compute.instanceGroups[${i}].instanceType`,
      type: g.instanceType,
    })),
    ...compute.alternatives.map((a, i) => ({ path: `compute.alternatives[${i}].instanceType`, type: a.instanceType })),
  ];
}

/** AWS's guide pages still give one hour, the service model six. */
const DOCUMENTED_KEEP_ALIVE_SECONDS = 3600;

function oneForm({ compute, written }: RunSpec): Finding[] {
  const plain = compute.instanceType !== '';
  const groups = compute.instanceGroups.length > 0;
  if (!plain && !groups)
    return [
      {
        path: 'compute.instanceType',
        must: 'must be given',
        fix: 'add instanceType: ml.p4d.24xlarge, or instanceGroups',
      },
    ];
  const counted = written.compute.instanceCount !== undefined && groups;
  return [
    ...when(counted, {
      path: 'compute.instanceCount',
      must: 'must not be given together with instanceGroups, which have counts of their own',
      got: compute.instanceCount,
      fix: 'remove it',
    }),
    ...when(plain && groups, {
      path: 'compute.instanceGroups',
      must: 'must not be given together with compute.instanceType',
      got: compute.instanceGroups.map((g) => g.name),
      fix: 'keep one of the two',
    }),
  ];
}

function groupNames({ compute }: RunSpec): Finding[] {
  const names = compute.instanceGroups.map((g) => g.name);
  return names.flatMap((name, i) =>
    when(names.indexOf(name) !== i, {
      path: `compute.instanceGroups[${i}].name`,
      must: 'must be unique among the groups',
      got: name,
      fix: 'use another name',
    }),
  );
}

function trainingPlan({ compute }: RunSpec): Finding[] {
  const plan = compute.trainingPlanArn;
  const unfit = namedTypes({ compute } as RunSpec).filter(({ type }) => findInstanceType(type)?.trainingPlan === false);
  return [
    ...when(compute.capacity === 'training-plan' && !plan && !compute.alternatives.some((a) => a.trainingPlanArn), {
      path: 'compute.trainingPlanArn',
      must: 'must be given with capacity training-plan',
      fix: 'add the ARN of the plan',
    }),
    ...when(compute.capacity !== 'training-plan' && plan !== undefined, {
      path: 'compute.trainingPlanArn',
      must: `must go with capacity training-plan, not ${compute.capacity}`,
      got: plan,
      fix: 'set capacity: training-plan, or remove it',
    }),
    ...(compute.capacity === 'training-plan'
      ? unfit.map(({ path, type }) => ({
          path,
          must: 'must be a type that training plans are sold for',
          got: type,
          fix: 'use ml.p4d, ml.p5, ml.p5e, ml.p5en, ml.p6 or ml.trn types, or capacity on-demand',
        }))
      : []),
  ];
}

function alternatives(run: RunSpec): Finding[] {
  const { compute } = run;
  if (compute.alternatives.length === 0) return [];
  const path = 'compute.alternatives';
  const counts = compute.alternatives.filter((a) => a.instanceCount !== undefined).length;
  const plans = compute.alternatives.some((a) => a.trainingPlanArn);
  const types = [compute.instanceType, ...compute.alternatives.map((a) => a.instanceType)];
  return [
    ...when(compute.capacity === 'spot', {
      path,
      must: 'must not be given with capacity spot',
      got: types.slice(1),
      fix: 'use capacity on-demand, or remove the alternatives',
    }),
    ...when(compute.instanceGroups.length > 0, {
      path,
      must: 'must not be given with instanceGroups',
      got: types.slice(1),
      fix: 'remove one of the two',
    }),
    ...when(types.length > 5, {
      path,
      must: 'must be at most 4 beside the first type',
      got: compute.alternatives.length,
      fix: 'keep the 4 best',
    }),
    ...when(counts > 0 && counts < compute.alternatives.length, {
      path,
      must: 'must give instanceCount for every alternative or for none',
      got: `${counts} of ${compute.alternatives.length}`,
      fix: 'add it everywhere, or leave compute.instanceCount alone',
    }),
    ...when(plans && compute.trainingPlanArn !== undefined, {
      path,
      must: 'must not name a plan when compute.trainingPlanArn does',
      got: 'both',
      fix: 'keep one of the two',
    }),
    ...types.flatMap((type, i) =>
      when(i > 0 && types.indexOf(type) !== i, {
        path: `${path}[${i - 1}].instanceType`,
        must: 'must differ from the types before it',
        got: type,
        fix: 'remove it',
      }),
    ),
  ];
}

function volume({ compute }: RunSpec): Finding[] {
  const types = instanceGroupsOf(compute).map((g) => g.instanceType);
  const nvme = types.find((type) => (findInstanceType(type)?.localNvmeGB ?? 0) > 0);
  if (compute.volumeSizeGiB === undefined) return [];
  return [
    ...when(nvme !== undefined, {
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
      fix: 'use a channel for the rest',
    }),
  ];
}

export const COMPUTE_RULES: readonly Rule[] = [
  {
    id: 'compute/form',
    level: 'error',
    what: 'A cluster is one type with a count, or instance groups.',
    why: 'The API takes one of the two.',
    source: api('ResourceConfig'),
    check: oneForm,
  },
  {
    id: 'compute/instance-type',
    level: 'error',
    isLocal: true,
    what: 'Every instance type exists for SageMaker training.',
    why: 'CreateTrainingJob refuses others.',
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
    why: 'Channels and the distribution name groups.',
    source: api('InstanceGroup'),
    check: groupNames,
  },
  {
    id: 'compute/training-plan',
    level: 'error',
    what: 'A training plan goes with capacity training-plan and a type that plans are sold for.',
    why: 'The job would wait or be refused.',
    source: guide('training-plan-utilization-for-training-jobs'),
    check: trainingPlan,
  },
  {
    id: 'compute/alternatives',
    level: 'error',
    what: 'Alternatives become InstancePreferences: at most five types, on-demand or training plans, no groups.',
    why: 'The service excludes the others.',
    source: api('ResourceConfig'),
    check: alternatives,
  },
  {
    id: 'compute/volume',
    level: 'error',
    what: 'An EBS volume is for types without local NVMe.',
    why: 'On the others no EBS volume exists; the size is ignored.',
    source: api('ResourceConfig'),
    check: volume,
  },
  {
    id: 'compute/training-plan-region',
    level: 'error',
    what: 'A training plan belongs to the region of the run.',
    why: 'Its capacity is in one zone of that region.',
    source: guide('reserve-capacity-with-training-plans'),
    check: ({ compute }, { region, descriptor }) => {
      const here = region ?? descriptor?.region;
      const there = compute.trainingPlanArn?.split(':')[3];
      return when(here !== undefined && there !== undefined && here !== there, {
        path: 'compute.trainingPlanArn',
        must: `must be a plan of ${here}`,
        got: compute.trainingPlanArn,
        fix: `launch into ${there}, or use a plan of ${here}`,
      });
    },
  },
  {
    id: 'compute/volume-beyond-quota',
    level: 'warning',
    what: 'A volume above 1024 GiB needs a higher quota.',
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
    what: 'Warm pools go with one on-demand instance type.',
    why: 'Spot and heterogeneous clusters leave none; training plans are not known to.',
    source: guide('train-warm-pools'),
    check: ({ compute }) => {
      const path = 'compute.keepAliveSeconds';
      if (compute.keepAliveSeconds === 0) return [];
      return [
        ...when(compute.capacity === 'spot', {
          path,
          must: 'must be 0 with capacity spot (spot leaves no warm pool)',
          got: compute.keepAliveSeconds,
          fix: 'use capacity on-demand, or remove it',
        }),
        ...when(compute.instanceGroups.length > 0, {
          path,
          must: 'must be 0 with instanceGroups (a heterogeneous cluster leaves no warm pool)',
          got: compute.keepAliveSeconds,
          fix: 'remove it',
        }),
        ...when(compute.keepAliveSeconds > DOCUMENTED_KEEP_ALIVE_SECONDS, {
          path,
          level: 'warning',
          must: 'must be at most 3600 (one hour) in the guide; the service model allows 21600',
          got: compute.keepAliveSeconds,
          fix: 'use 3600 to be safe',
        }),
      ];
    },
  },
  {
    id: 'compute/ultraserver',
    level: 'warning',
    what: 'ml.p6e-gb200.36xlarge is sold as whole UltraServers of 18 instances, for training plans, with arm64 images.',
    why: 'Other counts leave paid instances idle.',
    source: guide('reserve-capacity-with-training-plans'),
    check: ({ compute }) =>
      when(compute.instanceType === 'ml.p6e-gb200.36xlarge' && compute.instanceCount % 18 !== 0, {
        path: 'compute.instanceCount',
        must: 'must be a multiple of 18 for ml.p6e-gb200.36xlarge',
        got: compute.instanceCount,
        fix: 'use 18 or 36',
      }),
  },
  {
    id: 'compute/legacy-type',
    level: 'warning',
    isLocal: true,
    what: 'ml.p2 types are deprecated.',
    why: 'No image from PyTorch 1.13 on runs on them.',
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
    what: 'A plain script on several accelerators uses one of them.',
    why: 'Launcher script starts one process per host.',
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
