import { setTimeout as sleep } from 'node:timers/promises';
import { DescribeSecurityGroupsCommand, DescribeSubnetsCommand, EC2Client } from '@aws-sdk/client-ec2';
import { DescribeImagesCommand, ECRClient } from '@aws-sdk/client-ecr';
import { GetRoleCommand, IAMClient } from '@aws-sdk/client-iam';
import { ListObjectsV2Command, S3Client } from '@aws-sdk/client-s3';
import {
  DescribeTrainingPlanCommand,
  type DescribeTrainingPlanCommandOutput,
  SageMakerClient,
} from '@aws-sdk/client-sagemaker';
import { freeText, namedTrainingPlans, type TrainingPlanState, trainingPlanIssues } from '../../../core/admission';
import type { Descriptor } from '../../../core/config/descriptor';
import { addressesOf } from '../../../core/config/environment/network';
import { type Issue, issue } from '../../../core/config/issue';
import { requestedGroupsOf } from '../../../core/config/resolve-run';
import type { RunSpec } from '../../../core/config/run-spec';
import { planRun } from '../../../core/planner/run/plan-run';
import { selfReachingGroups } from '../../../shared/aws/network/security-groups';
import { embeddedEndpoint } from '../../../shared/environment/embedded-endpoint';
import { awsClient } from '../../aws-client';
import { hasNoCredentials, isDenied, serviceError } from '../../aws-errors';

/** One line of preflight: the question, the account's answer, and whether the environment can work with it. */
export interface Check {
  name: string;
  verdict: 'ok' | 'failed' | 'unknown';
  detail: string;
  /** The permission that the caller lacks, so that the answer is unknown: `iam:GetRole on slipway-research-nlp-execution`. */
  missingPermission?: string;
}

/** Converts checks that did not succeed to issues. A missing permission of the caller is not a problem of the run. */
export const checkIssues = (checks: readonly Check[]): Issue[] =>
  checks
    .filter((c) => c.verdict !== 'ok')
    .map(({ name, verdict, detail, missingPermission }) => {
      const [must, fix] = missingPermission
        ? [
            'allow you to read',
            'the run itself does not need it; ask the platform team to grant it, or to run preflight for you',
          ]
        : verdict === 'failed'
          ? ['pass the check of', 'deploy the environment again, or ask the platform team']
          : ['allow a check of', 'try again; the run itself does not need it'];
      const text = { must: `must ${must} the ${name}`, got: detail, fix };
      const level = verdict === 'failed' ? 'error' : 'warning';
      return issue(`preflight/${name.replaceAll(' ', '-')}`, level, 'environment', text);
    });

/** Checks what the account must provide for the run, with the caller's own permissions. */
export async function accountChecks(run: RunSpec, descriptor: Descriptor): Promise<Check[]> {
  const { region, team } = descriptor;
  const RoleName = descriptor.executionRoleArn.split('/').pop() ?? '';
  const retry = { region, maxAttempts: 3 };
  const s3 = awsClient(S3Client, retry);
  const ec2 = awsClient(EC2Client, retry);
  return Promise.all([
    check('execution role', `iam:GetRole on ${RoleName}`, async () => {
      await awsClient(IAMClient, retry).send(new GetRoleCommand({ RoleName }));
      return RoleName;
    }),
    ...(['dataBucket', 'checkpointBucket', 'artifactBucket'] as const).map((key) =>
      check(key.replace('Bucket', ' bucket'), `s3:ListBucket on ${descriptor[key]}`, async () => {
        // A researcher may list the team's own prefix of a bucket, and the folders of the data bucket.
        const Prefix = key === 'dataBucket' ? '' : `runs/${team}/`;
        await s3.send(new ListObjectsV2Command({ Bucket: descriptor[key], Prefix, Delimiter: '/', MaxKeys: 1 }));
        return descriptor[key];
      }),
    ),
    // The embedded AWS has neither images nor rules of a security group for itself (LEFT_OUT of lib/cdk/embedded-aws.ts).
    ...(run.image.kind === 'environment' && !embeddedEndpoint()
      ? [check('training image', 'ecr:DescribeImages', () => imageDetail(descriptor, region))]
      : []),
    ...(descriptor.subnetIds.length > 0
      ? [
          check('free addresses', 'ec2:DescribeSubnets', () => addressDetail(ec2, run, descriptor)),
          check('security group', 'ec2:DescribeSecurityGroups', () => securityGroupDetail(ec2, run, descriptor)),
        ]
      : []),
  ]);
}

/** A requirement that is not met, as opposed to a call that failed. */
class Unmet extends Error {}

const MISSING = [
  'NoSuchEntity',
  'NoSuchEntityException',
  'NotFound',
  'NoSuchBucket',
  'ImageNotFoundException',
  'RepositoryNotFoundException',
  'InvalidSubnetID.NotFound',
  'InvalidGroup.NotFound',
  'InvalidVpcID.NotFound',
];

/**
 * Runs one check. A missing resource is a failure; after a failed call the result is unknown.
 * @param permission that the check needs, for a caller who lacks it
 * @throws ServiceError without credentials, with which no check could answer
 */
export async function check(name: string, permission: string, read: () => Promise<string>): Promise<Check> {
  for (let attempt = 1; ; attempt++) {
    try {
      return { name, verdict: 'ok', detail: await read() };
    } catch (error) {
      const { name: kind, message } = error as Error;
      if (hasNoCredentials(error)) throw serviceError(`reading the ${name}`, error);
      if (error instanceof Unmet || MISSING.includes(kind)) return { name, verdict: 'failed', detail: message };
      if (isDenied(error))
        return { name, verdict: 'unknown', detail: `no permission for ${permission}`, missingPermission: permission };
      if (!/Throttl/.test(kind) || attempt === 3) return { name, verdict: 'unknown', detail: `${kind}: ${message}` };
      await sleep(500 * attempt);
    }
  }
}

async function imageDetail({ trainingImageUri }: Descriptor, region: string): Promise<string> {
  const uri = /^\d{12}\.dkr\.ecr\.[^/]+\/([^:@]+)(?::([^@]+))?(?:@(sha256:.+))?$/.exec(trainingImageUri ?? '');
  if (!uri) throw new Unmet(trainingImageUri ? `${trainingImageUri} is not in ECR` : 'the environment has none');
  const [, repositoryName, imageTag, imageDigest] = uri;
  await awsClient(ECRClient, { region }).send(
    new DescribeImagesCommand({ repositoryName, imageIds: [imageDigest ? { imageDigest } : { imageTag }] }),
  );
  return trainingImageUri ?? '';
}

async function addressDetail(ec2: EC2Client, run: RunSpec, descriptor: Descriptor): Promise<string> {
  const { Subnets = [] } = await ec2.send(new DescribeSubnetsCommand({ SubnetIds: descriptor.subnetIds }));
  const needed = requestedGroupsOf(run.compute).reduce(
    (sum, { instanceType, instanceCount }) => sum + addressesOf(instanceType, instanceCount),
    0,
  );
  const most = Math.max(0, ...Subnets.map((s) => s.AvailableIpAddressCount ?? 0));
  // All instances of a job are placed in one zone, so one subnet must have enough addresses.
  if (most < needed) throw new Unmet(`${needed} addresses are required in one subnet, but the largest has ${most}`);
  return `${needed} required, ${most} free in one subnet`;
}

async function securityGroupDetail(ec2: EC2Client, run: RunSpec, descriptor: Descriptor): Promise<string> {
  const { SecurityGroups = [] } = await ec2.send(
    new DescribeSecurityGroupsCommand({ GroupIds: descriptor.securityGroupIds }),
  );
  if (run.network.efa !== 'required' || embeddedEndpoint()) return descriptor.securityGroupIds.join(', ');
  const [good] = selfReachingGroups(SecurityGroups);
  if (!good) throw new Unmet('no group allows all traffic from and to itself, which EFA requires');
  return `${good.GroupId} allows all traffic from and to itself`;
}

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
function hoursOf(run: RunSpec, descriptor: Descriptor): number | undefined {
  const plan = planRun(run, descriptor);
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
