import {
  acceleratorCount,
  findInstanceType,
  hasLocalNvme,
  nearestInstanceTypes,
} from '../../catalog/instances/instances';
import { writingKey } from '../../config/descriptor';
import { orList } from '../../config/issue';
import { instanceGroupsOf } from '../../config/resolve-run';
import { type Rule, regionOf, rule, UNSHOWN, when } from '../../config/rule';
import type { RunSpec } from '../../config/run-spec';
import { namedTypes } from '../../distribution/strategy';

/** Instances of an UltraServer u-p6e-gb200x72 that a training plan can use: without its spare instance, and all. */
const ULTRASERVER = [17, 18];
const fillsUltraServers = (count: number): boolean => ULTRASERVER.some((instances) => count % instances === 0);

/** AWS's guide pages still state one hour, the service model six hours. */
const DOCUMENTED_KEEP_ALIVE_SECONDS = 3600;

const namedPlans = ({ compute }: RunSpec) => [
  { path: 'compute.trainingPlanArn', arn: compute.trainingPlanArn },
  ...compute.alternatives.map((a, i) => ({
    path: `compute.alternatives[${i}].trainingPlanArn`,
    arn: a.trainingPlanArn,
  })),
];

/** Rules for instance types, counts and capacity of training runs. */
export const COMPUTE_RULES: readonly Rule[] = [
  rule('compute/form', 'error', ({ compute, written }) => {
    const plain = compute.instanceType !== '';
    const groups = compute.instanceGroups.length > 0;
    if (!plain && !groups)
      return {
        path: 'compute.instanceType',
        must: 'must be given',
        got: UNSHOWN,
        fix: 'add instanceType: ml.p4d.24xlarge, or instanceGroups',
      };
    const counted = written.compute.instanceCount !== undefined && groups;
    return [
      ...when(counted, 'compute.instanceCount', {
        must: 'must not be given together with instanceGroups, which have their own counts',
      }),
      ...when(plain && groups, 'compute.instanceGroups', {
        must: 'must not be given together with compute.instanceType',
        got: compute.instanceGroups.map((g) => g.name),
        fix: 'keep one of the two',
      }),
    ];
  }),
  rule('compute/instance-type', 'error, local', (run) =>
    namedTypes(run)
      .filter(({ type }) => !findInstanceType(type))
      .map(({ path, type }) => ({
        path,
        must: 'must be a SageMaker training instance type',
        fix: `use for example ${orList(nearestInstanceTypes(type))}`,
      })),
  ),
  rule('compute/group-names', 'error, local', ({ compute }) => {
    const names = compute.instanceGroups.map((g) => g.name);
    return names.flatMap((name, i) =>
      when(names.indexOf(name) !== i, `compute.instanceGroups[${i}].name`, {
        must: 'must be unique among the groups',
        fix: 'use another name',
      }),
    );
  }),
  /** A plan requires capacity training-plan, and instance types for which plans are sold. */
  rule('compute/training-plan', 'error', ({ compute }) => {
    const plan = compute.trainingPlanArn;
    const unfit = namedTypes({ compute }).filter(({ type }) => findInstanceType(type)?.trainingPlan === false);
    const isWithoutPlan =
      compute.capacity === 'training-plan' && !plan && !compute.alternatives.some((a) => a.trainingPlanArn);
    return [
      ...when(isWithoutPlan, 'compute.trainingPlanArn', {
        must: 'must be given with capacity training-plan',
        fix: 'add the ARN of the plan',
      }),
      ...when(compute.capacity !== 'training-plan' && plan !== undefined, 'compute.trainingPlanArn', {
        must: `must be used with capacity training-plan, not ${compute.capacity}`,
        fix: 'set capacity: training-plan, or remove it',
      }),
      ...(compute.capacity === 'training-plan'
        ? unfit.map(({ path }) => ({
            path,
            must: 'must be a type for which training plans are available',
            fix: 'use ml.p4d, ml.p5, ml.p5e, ml.p5en, ml.p6 or ml.trn types, or capacity on-demand',
          }))
        : []),
    ];
  }),
  rule('compute/alternatives', 'error', ({ compute }) => {
    const { alternatives: entries } = compute;
    if (entries.length === 0) return [];
    const path = 'compute.alternatives';
    const types = [compute.instanceType, ...entries.map((a) => a.instanceType)];
    const counts = entries.filter((a) => a.instanceCount !== undefined).length;
    return [
      ...when(compute.capacity === 'spot', path, {
        must: 'must not be given with capacity spot',
        got: types.slice(1),
        fix: 'use capacity on-demand, or remove the alternatives',
      }),
      ...when(compute.instanceGroups.length > 0, path, {
        must: 'must not be given with instanceGroups',
        got: types.slice(1),
        fix: 'remove one of the two',
      }),
      ...when(compute.trainingPlanArn !== undefined && entries.some((a) => a.trainingPlanArn), path, {
        must: 'must not contain a plan when compute.trainingPlanArn is set',
        got: 'both',
        fix: 'keep one of the two',
      }),
      ...when(entries.length > 4, path, {
        must: 'must be at most 4 in addition to the first type',
        got: entries.length,
        fix: 'keep the best 4',
      }),
      ...when(counts > 0 && counts < entries.length, path, {
        must: 'must set instanceCount for all alternatives or for none',
        got: `${counts} of ${entries.length}`,
        fix: 'add it to all of them, or use only compute.instanceCount',
      }),
      ...types.flatMap((type, i) =>
        when(types.indexOf(type) !== i, `${path}[${i - 1}].instanceType`, {
          must: 'must differ from the types before it',
        }),
      ),
    ];
  }),
  rule('compute/volume', 'error', ({ compute }) => {
    const types = instanceGroupsOf(compute).map((g) => g.instanceType);
    const [nvme] = types;
    if (compute.volumeSizeGiB === undefined) return [];
    return [
      // The groups without local NVMe need the volume, which the other groups ignore.
      ...when(types.every(hasLocalNvme), 'compute.volumeSizeGiB', {
        level: 'warning',
        must: `must not be given for ${nvme}: it has ${findInstanceType(nvme ?? '')?.localNvmeGB} GB of local NVMe and no EBS volume`,
      }),
      ...when(compute.volumeSizeGiB > 16_384, 'compute.volumeSizeGiB', {
        must: 'must be at most 16384',
        fix: 'use a channel for the remaining data',
      }),
    ];
  }),
  /**
   * A request has one key for the volumes of all types, which types with local NVMe reject and an environment with a key requires of the others.
   */
  rule('compute/mixed-storage', 'warning', (run, { descriptor }) => {
    if (!descriptor || writingKey(descriptor) === undefined) return [];
    const [first, ...others] = namedTypes(run).filter(({ type }) => findInstanceType(type));
    const odd = others.find(({ type }) => first && hasLocalNvme(type) !== hasLocalNvme(first.type));
    if (!first || !odd) return [];
    const has = hasLocalNvme(first.type);
    return {
      path: odd.path,
      must: `must have local NVMe storage exactly if ${first.type} has it: SageMaker rejects the key of EBS volumes for types with it`,
      fix: has
        ? 'use a type with it, such as ml.m5d, ml.r5d or ml.g5'
        : 'use a type without it, such as ml.m5 or ml.c5',
    };
  }),
  /** The capacity of a plan is in one Region. */
  rule('compute/training-plan-region', 'error', (run, context) => {
    const here = regionOf(context);
    return namedPlans(run).flatMap(({ path, arn }) => {
      const there = arn?.split(':')[3];
      return when(here !== undefined && there !== undefined && here !== there, path, {
        must: `must be a plan of ${here}`,
        fix: `launch into ${there}, or use a plan of ${here}`,
      });
    });
  }),
  rule('compute/foreign-training-plan', 'error', (run, { descriptor }) => {
    const foreign = descriptor?.foreignTrainingPlans ?? [];
    return namedPlans(run).flatMap(({ path, arn }) =>
      when(arn !== undefined && foreign.includes(arn), path, {
        must: 'must be a plan of the own team, or one that no team has',
        fix: `use another plan, or ask the platform team to add it to teams.${descriptor?.team}.trainingPlans`,
      }),
    );
  }),
  rule('compute/volume-beyond-quota', 'warning', ({ compute }) =>
    when((compute.volumeSizeGiB ?? 0) > 1024 && (compute.volumeSizeGiB ?? 0) <= 16_384, 'compute.volumeSizeGiB', {
      must: 'must be within the quota on EBS volumes (1024 GiB by default)',
      fix: 'check it with slipway quota',
    }),
  ),
  rule('compute/warm-pool', 'error', ({ compute, preemptible }) => {
    const path = 'compute.keepAliveSeconds';
    if (compute.keepAliveSeconds === 0) return [];
    return [
      ...when(compute.capacity === 'spot', path, {
        must: 'must be 0 with capacity spot (spot jobs keep no warm pool)',
        fix: 'use capacity on-demand, or remove it',
      }),
      ...when(compute.instanceGroups.length > 0, path, {
        must: 'must be 0 with instanceGroups (a heterogeneous cluster keeps no warm pool)',
      }),
      ...when(preemptible === true, path, {
        must: 'must be 0 with preemptible: the warm pool would keep the instances from the run for which this one makes room',
        fix: 'remove one of them',
      }),
      ...when(compute.keepAliveSeconds > DOCUMENTED_KEEP_ALIVE_SECONDS, path, {
        level: 'warning',
        must: 'must be at most 3600 (one hour) according to the developer guide; the service model allows 21600',
        fix: 'use 3600 to be safe',
      }),
    ];
  }),
  rule('compute/ultraserver', 'warning', ({ compute }) => {
    const isUneven = compute.instanceType === 'ml.p6e-gb200.36xlarge' && !fillsUltraServers(compute.instanceCount);
    return when(isUneven, 'compute.instanceCount', {
      must: 'must be a multiple of 17 (one spare instance of each UltraServer, the default of a training plan) or of 18 for ml.p6e-gb200.36xlarge',
      fix: 'use 17, or 18 with a plan that was created with SpareInstanceCountPerUltraServer 0',
    });
  }),
  rule('compute/legacy-type', 'warning, local', (run) =>
    namedTypes(run)
      .filter(({ type }) => type.startsWith('ml.p2.'))
      .map(({ path }) => ({ path, must: 'must be a type with current images', fix: 'use ml.g5 or newer' })),
  ),
  rule('compute/idle-accelerators', 'warning', (run) => {
    const isIdle =
      run.kind === 'training' &&
      run.distribution.launcher === 'script' &&
      acceleratorCount(run.compute.instanceType) > 1 &&
      run.code.entryPoint.endsWith('.py');
    return when(isIdle, 'distribution.launcher', {
      must: `must start ${acceleratorCount(run.compute.instanceType)} processes to use every accelerator, unless the script does`,
      fix: 'use torchrun',
    });
  }),
];
