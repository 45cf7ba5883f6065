import {
  DescribeTrainingPlanCommand,
  type DescribeTrainingPlanCommandOutput,
  SageMakerClient,
} from '@aws-sdk/client-sagemaker';
import { freeText, namedTrainingPlans, type TrainingPlanState, trainingPlanIssues } from '../../core/admission';
import type { Descriptor } from '../../core/config/descriptor';
import type { Issue } from '../../core/config/issue';
import type { RunSpec } from '../../core/config/run-spec';
import { planRun } from '../../core/planner/run/plan-run';
import { awsClient } from '../aws-client';
import { type Check, check, Unmet } from '../environment/checks/account-checks';

/** Reads the training plans that a run names, with the caller's permissions; makes no calls for a run without one. */
export async function checkTrainingPlans(
  run: RunSpec,
  descriptor: Descriptor,
): Promise<{ checks: Check[]; issues: Issue[] }> {
  const named = namedTrainingPlans(run);
  if (named.length === 0) return { checks: [], issues: [] };
  const client = awsClient(SageMakerClient, { region: descriptor.region, maxAttempts: 3 });
  const now = Date.now();
  // The run's plan is computed for its first instance type: how long an alternative takes is not known.
  const hours = run.compute.trainingPlanArn ? hoursOf(run, descriptor) : undefined;
  const issues: Issue[] = [];
  const checks = await Promise.all(
    named.map((plan) =>
      check('training plan', `sagemaker:DescribeTrainingPlan on ${plan.arn}`, async () => {
        const state = await readPlan(client, plan.arn);
        issues.push(...trainingPlanIssues(plan, state, { now, hours }));
        return `${state.status}, ${freeText(state)}`;
      }),
    ),
  );
  return { checks, issues };
}

async function readPlan(client: SageMakerClient, arn: string): Promise<TrainingPlanState> {
  try {
    return stateOf(
      await client.send(new DescribeTrainingPlanCommand({ TrainingPlanName: arn.replace(/^.*:training-plan\//, '') })),
    );
  } catch (error) {
    // The API's only specific error: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_DescribeTrainingPlan.html
    if ((error as Error).name === 'ResourceNotFound') throw new Unmet(`${arn} does not exist`);
    throw error;
  }
}

/** Expected hours of the whole run; undefined when the file names no model. */
function hoursOf(run: RunSpec, { region, prices }: Descriptor): number | undefined {
  const plan = planRun(run, { region, prices });
  return Array.isArray(plan) ? undefined : (plan.wallHours ?? undefined);
}

function stateOf(plan: DescribeTrainingPlanCommandOutput): TrainingPlanState {
  const parts = plan.ReservedCapacitySummaries ?? [];
  return {
    status: plan.Status ?? 'Pending',
    instanceTypes: [...new Set(parts.map(({ InstanceType }) => String(InstanceType)))],
    targets: (plan.TargetResources ?? []).map(String),
    totalInstances: plan.TotalInstanceCount ?? 0,
    freeInstances: plan.AvailableInstanceCount ?? 0,
    unhealthyInstances: plan.UnhealthyInstanceCount ?? 0,
    spareInstances: plan.AvailableSpareInstanceCount ?? 0,
    ultraServers: plan.TotalUltraServerCount ?? 0,
    startsAt: plan.StartTime?.getTime(),
    endsAt: plan.EndTime?.getTime(),
  };
}
