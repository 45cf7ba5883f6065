import type { Issue } from '../config/issue';
import { hostCount, onInstances, requestedAlternativesOf, requestedGroupsOf } from '../config/resolve-run';
import { type Finding, issueOf, when } from '../config/rule';
import type { RunSpec } from '../config/run-spec';
import { type NearestPublished, nearestPublished } from '../planner/run/nearest-published';
import { type PriceFacts, planRun, type RunPlan } from '../planner/run/plan-run';
import { bestSpares, keptCopies, type SpareValue, sparesOf, spareValue } from '../planner/run/recovery';
import { checkRun } from '../rules';
import { elasticSizes } from '../rules/compute/hosts';

/** The result of DescribeTrainingPlan, as far as a launch depends on it. Times are milliseconds since 1970. */
export interface TrainingPlanState {
  status: 'Pending' | 'Active' | 'Scheduled' | 'Expired' | 'Failed';
  /** Instance types of its reserved capacity. */
  instanceTypes: string[];
  /** Allowed uses: `training-job`, `hyperpod-cluster`, `endpoint`. */
  targets: string[];
  totalInstances: number;
  /** Number of instances that no job holds now. */
  freeInstances: number;
  unhealthyInstances: number;
  /** Number of instances that the service reserves to replace broken ones; one per UltraServer unless the plan specifies otherwise. */
  spareInstances: number;
  ultraServers: number;
  startsAt?: number;
  endsAt?: number;
}

type NamedTrainingPlan = ReturnType<typeof namedTrainingPlans>[number];

/** The training plans of a run, that of the job and those of its alternatives, with the paths of the options in the run file. */
export function namedTrainingPlans(run: RunSpec) {
  const { compute } = run;
  // Largest first.
  const sizes = compute.elastic && { sizes: elasticSizes(run) };
  const own = compute.trainingPlanArn && {
    path: 'compute.trainingPlanArn',
    arn: compute.trainingPlanArn,
    instanceType: compute.instanceType || (compute.instanceGroups[0]?.instanceType ?? ''),
    instanceCount: hostCount(requestedGroupsOf(compute)),
    ...sizes,
  };
  const others = requestedAlternativesOf(compute).flatMap(({ trainingPlanArn: arn, ...requested }, i) =>
    arn ? [{ path: `compute.alternatives[${i}].trainingPlanArn`, arn, ...requested, ...sizes }] : [],
  );
  return [...(own ? [own] : []), ...others];
}

/**
 * Issues that a training plan causes for a launch now: an error if waiting does not help, a warning if the job would wait or be cut off.
 * @param hours duration of the run according to its plan; undefined: not known
 */
export function trainingPlanIssues(
  named: NamedTrainingPlan,
  state: TrainingPlanState,
  { now, hours }: { now: number; hours?: number },
): Issue[] {
  const found = [
    ...unusable(named, state),
    ...(isOver(state) ? [] : [...sizes(named, state), ...times(named, state, now, hours)]),
  ];
  return found.map((finding) => issueOf(RULE, finding));
}

const isOver = ({ status }: TrainingPlanState): boolean => status === 'Expired' || status === 'Failed';

const RULE = { id: 'preflight/training-plan', level: 'error' } as const;
const OTHER_PLAN = 'name another plan (aws sagemaker list-training-plans), or remove it';

function unusable({ path, instanceType }: NamedTrainingPlan, state: TrainingPlanState): Finding[] {
  return [
    ...when(isOver(state), path, { must: 'must be active or scheduled', got: state.status, fix: OTHER_PLAN }),
    ...when(!state.targets.includes('training-job'), path, {
      must: 'must be a plan for training jobs',
      got: state.targets,
      fix: OTHER_PLAN,
    }),
    ...when(!state.instanceTypes.includes(instanceType), path, {
      must: `must contain ${instanceType}`,
      got: state.instanceTypes,
      fix: `${OTHER_PLAN}, or use its instance type`,
    }),
  ];
}

function sizes(named: NamedTrainingPlan, state: TrainingPlanState): Finding[] {
  const { path, instanceCount } = named;
  const isTooSmall = instanceCount > state.totalInstances;
  return [
    ...when(isTooSmall, path, {
      must: `must contain the ${instanceCount} instances of the job`,
      got: `${state.totalInstances} in all`,
      fix: smallerSize(named, state),
    }),
    ...when(!isTooSmall && state.status === 'Active' && instanceCount > state.freeInstances, path, {
      level: 'warning',
      must: `must have ${instanceCount} free instances to start at once`,
      got: freeText(state),
      fix:
        instanceCount > state.totalInstances - state.spareInstances
          ? 'use fewer instances: the service keeps the spare ones of UltraServers'
          : 'the job waits until other jobs of the plan end',
    }),
  ];
}

/**
 * The remedy when a plan is too small. An elastic run starts with its largest size; it is not documented whether SageMaker would refuse
 * that permanently or only for the moment, so the run file must use the size of the plan.
 */
function smallerSize({ sizes: all = [] }: NamedTrainingPlan, { totalInstances }: TrainingPlanState): string {
  const [largest, ...smaller] = all.filter((size) => size <= totalInstances);
  if (largest === undefined) return 'lower the number of instances, or name a larger plan';
  const count = smaller.length > 0 ? `compute.instanceCount.max to ${largest}` : `compute.instanceCount to ${largest}`;
  return `set ${count}, the largest size that the plan holds, or name a larger plan`;
}

function times({ path }: NamedTrainingPlan, state: TrainingPlanState, now: number, hours?: number): Finding[] {
  const { startsAt = now, endsAt } = state;
  const left = ((endsAt ?? Number.POSITIVE_INFINITY) - Math.max(now, startsAt)) / 3_600_000;
  const day = (time = now) => `${new Date(time).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
  return [
    ...when(startsAt > now, path, {
      level: 'warning',
      must: 'must have begun for the job to start at once',
      got: `a start at ${day(startsAt)}`,
      fix: 'the job waits until then',
    }),
    ...when(hours !== undefined && hours > left, path, {
      level: 'warning',
      must: `must last for the ${hours?.toFixed(1)} hours that the run takes by its plan`,
      got: `${Math.max(0, left).toFixed(1)} hours until ${day(endsAt)}`,
      fix: 'the job ends with the training plan, and so may the run; extend the training plan, or use more instances',
    }),
  ];
}

/** `34 of 36 instances free, 2 spare, 2 UltraServers`. */
export function freeText(state: TrainingPlanState): string {
  return [
    `${state.freeInstances} of ${state.totalInstances} instances free`,
    ...(state.unhealthyInstances > 0 ? [`${state.unhealthyInstances} unhealthy`] : []),
    ...(state.ultraServers > 0 ? [`${state.spareInstances} spare`, `${state.ultraServers} UltraServers`] : []),
  ].join(', ');
}

/** The value of a run's spare hosts, or of a recommended number of them. */
interface SpareValues {
  /** Value of the spare hosts that the run has. */
  own?: SpareValue;
  /** Value of the best number of spare hosts, if the run has none, may have some, and they save more than they cost. */
  advice?: SpareValue;
}

/** Evaluates spare hosts with the planner and the rules. */
export function spareValues(run: RunSpec, plan: RunPlan): SpareValues {
  const spares = sparesOf(run);
  const { checkpoint, layout } = plan;
  const copies = keptCopies(plan);
  if (spares.instances > 0) return { own: spareValue(checkpoint, layout.nodes, spares, copies) };
  const advice = bestSpares(checkpoint, layout.nodes, spares.attemptSeconds, copies);
  if (!advice) return {};
  const issues = checkRun({ ...run, compute: { ...run.compute, spareInstances: advice.instances } });
  return issues.some(({ rule }) => rule.startsWith('compute/spare-')) ? {} : { advice };
}

/** The output of `slipway plan --json`, and of the control function's `plan`. */
export type PlanDocument = RunPlan & {
  spares: SpareValues;
  /** The nearest published run. @default - none is near */
  nearest?: NearestPublished;
  /** For an elastic run, largest size first. @default - the run has one size */
  sizes?: SizePlan[];
};

/** The complete plan of a run, or the issues that prevent it. */
export function planDocument(run: RunSpec, facts: PriceFacts): PlanDocument | Issue[] {
  const plan = planRun(run, facts);
  if (Array.isArray(plan)) return plan;
  const sizes = sizePlans(run, facts);
  const nearest = nearestPublished(plan.layout);
  return {
    ...plan,
    spares: spareValues(run, plan),
    ...(nearest && { nearest }),
    ...(sizes.length > 0 && { sizes }),
  };
}

/** The plan of a run on one of its sizes, from its first to its last step; `memoryGiB` is that of one GPU. */
export type SizePlan = ReturnType<typeof sizePlans>[number];

/** A plan of each size of an elastic run, largest first; empty for a run of one size. */
function sizePlans(run: RunSpec, facts: PriceFacts) {
  return elasticSizes(run).flatMap((instanceCount) => {
    const plan = planRun(onInstances(run, instanceCount), facts);
    if (Array.isArray(plan)) return [];
    const { fits, memoryGiB, stepSeconds, hours, usd } = plan;
    return { instanceCount, fits, memoryGiB: memoryGiB.total, stepSeconds, hours, usd: usd.onDemand };
  });
}
