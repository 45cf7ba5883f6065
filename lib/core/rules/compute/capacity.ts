import { findInstanceType } from '../../catalog/instances/instances';
import { type Finding, type Rule, type RuleContext, regionOf, rule, ruleWhere, when } from '../../config/rule';
import type { RunSpec } from '../../config/run-spec';
import { namedTypes } from './types';

/** AWS's guide pages still state one hour, the service model six hours. */
const DOCUMENTED_KEEP_ALIVE_SECONDS = 3600;

/** A plan requires capacity training-plan, and instance types for which plans are sold. */
export function trainingPlan({ compute }: RunSpec): Finding[] {
  const plan = compute.trainingPlanArn;
  const unfit = namedTypes({ compute } as RunSpec).filter(({ type }) => findInstanceType(type)?.trainingPlan === false);
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
}

/** The plans that a run file names, with their paths. */
const namedPlans = ({ compute }: RunSpec) => [
  { path: 'compute.trainingPlanArn', arn: compute.trainingPlanArn },
  ...compute.alternatives.map((a, i) => ({
    path: `compute.alternatives[${i}].trainingPlanArn`,
    arn: a.trainingPlanArn,
  })),
];

/** A plan that another team paid for. */
export function foreignTrainingPlan(run: RunSpec, { descriptor }: RuleContext): Finding[] {
  const foreign = descriptor?.foreignTrainingPlans ?? [];
  return namedPlans(run).flatMap(({ path, arn }) =>
    when(arn !== undefined && foreign.includes(arn), path, {
      must: 'must be a plan of the own team, or one that no team has',
      fix: `use another plan, or ask the platform team to add it to teams.${descriptor?.team}.trainingPlans`,
    }),
  );
}

/** The capacity of a plan is in one Region. */
export function trainingPlanRegion(run: RunSpec, context: RuleContext): Finding[] {
  const here = regionOf(context);
  return namedPlans(run).flatMap(({ path, arn }) => {
    const there = arn?.split(':')[3];
    return when(here !== undefined && there !== undefined && here !== there, path, {
      must: `must be a plan of ${here}`,
      fix: `launch into ${there}, or use a plan of ${here}`,
    });
  });
}

/** Findings about options that the service does not allow together with alternatives, and about their number. */
export function alternatives(run: RunSpec): Finding[] {
  if (run.compute.alternatives.length === 0) return [];
  return [...besideAlternatives(run), ...alternativeEntries(run), ...repeatedTypes(run)];
}

/** Options that must not be used together with alternatives. */
function besideAlternatives({ compute }: RunSpec): Finding[] {
  const path = 'compute.alternatives';
  const types = compute.alternatives.map((a) => a.instanceType);
  const plans = compute.alternatives.some((a) => a.trainingPlanArn);
  return [
    ...when(compute.capacity === 'spot', path, {
      must: 'must not be given with capacity spot',
      got: types,
      fix: 'use capacity on-demand, or remove the alternatives',
    }),
    ...when(compute.instanceGroups.length > 0, path, {
      must: 'must not be given with instanceGroups',
      got: types,
      fix: 'remove one of the two',
    }),
    ...when(plans && compute.trainingPlanArn !== undefined, path, {
      must: 'must not contain a plan when compute.trainingPlanArn is set',
      got: 'both',
      fix: 'keep one of the two',
    }),
  ];
}

/** The number of alternatives, and fields that all of them must have. */
function alternativeEntries({ compute: { alternatives: entries } }: RunSpec): Finding[] {
  const path = 'compute.alternatives';
  const counts = entries.filter((a) => a.instanceCount !== undefined).length;
  return [
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
  ];
}

function repeatedTypes({ compute }: RunSpec): Finding[] {
  const types = [compute.instanceType, ...compute.alternatives.map((a) => a.instanceType)];
  return types.flatMap((type, i) =>
    when(i > 0 && types.indexOf(type) !== i, `compute.alternatives[${i - 1}].instanceType`, {
      must: 'must differ from the types before it',
      fix: 'remove it',
    }),
  );
}

/** Findings about jobs that leave no warm pool, and about the keep-alive period. */
export function warmPool({ compute }: RunSpec): Finding[] {
  const path = 'compute.keepAliveSeconds';
  if (compute.keepAliveSeconds === 0) return [];
  return [
    ...when(compute.capacity === 'spot', path, {
      must: 'must be 0 with capacity spot (spot jobs keep no warm pool)',
      fix: 'use capacity on-demand, or remove it',
    }),
    ...when(compute.instanceGroups.length > 0, path, {
      must: 'must be 0 with instanceGroups (a heterogeneous cluster keeps no warm pool)',
      fix: 'remove it',
    }),
    ...when(compute.keepAliveSeconds > DOCUMENTED_KEEP_ALIVE_SECONDS, path, {
      level: 'warning',
      must: 'must be at most 3600 (one hour) according to the developer guide; the service model allows 21600',
      fix: 'use 3600 to be safe',
    }),
  ];
}

const path = 'preemptible';

/** The rules apply only to preemptible runs. */
export const PREEMPTION_RULES: readonly Rule[] = [
  rule('preemption/checkpoints', 'error', ({ kind, checkpoints: { mode } }) => {
    if (kind !== 'training')
      return {
        path,
        must: 'must be false in a processing run, which always starts from the beginning',
        fix: 'remove it',
      };
    return when(mode === 'none', path, {
      must: 'must be used with checkpoints: otherwise the run restarts at step 0 after every preemption',
      got: 'checkpoints.mode none',
      fix: 'set checkpoints, or remove preemptible',
    });
  }),
  rule('preemption/own-code', 'warning, may acknowledge', ({ code, distribution, network }) => {
    const seesRequests = distribution.contract === 'entrypoint' && !network.isolation;
    return when(code.builtin === undefined, path, {
      must: seesRequests
        ? 'must be used with code that saves and leaves with exit code 76 when SLIPWAY_HAND_OVER_FILE appears, or saves within 120 s of SIGTERM'
        : 'must be used with code that saves within 120 s of SIGTERM: requests to leave are not read under the toolkit contract or network isolation',
      got: 'custom code, which cannot be checked',
      fix: 'see "Preemption" in docs/queue.md, then acknowledge preemption/own-code',
    });
  }),
].map(ruleWhere(({ preemptible }) => preemptible === true));
