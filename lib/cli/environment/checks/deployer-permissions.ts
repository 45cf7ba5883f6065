import { type EvaluationResult, GetRoleCommand, IAMClient, paginateSimulatePrincipalPolicy } from '@aws-sdk/client-iam';
import { GetCallerIdentityCommand, STSClient } from '@aws-sdk/client-sts';
import { REGIONS } from '../../../core/catalog/regions';
import type { EnvironmentSpec } from '../../../core/config/environment-file';
import type { Issue } from '../../../core/config/issue';
import { itemsOf } from '../../../shared/aws/pages';
import { awsClient } from '../../aws-client';
import { bootstrapQualifier } from './bootstrap-qualifier';
import { accountOf, found, inspect, type ResourceCheck } from './environment-checks';

/** An action of each service that a deploy or a run calls; a test compares them with the policy that `deployer-policy` prints. */
export const DEPLOY_ACTIONS: readonly string[] = [
  ...['cloudwatch:PutMetricAlarm', 'cloudwatch:PutDashboard', 'codebuild:CreateProject', 'dynamodb:CreateTable'],
  ...['ec2:CreateVpc', 'ec2:CreateVpcEndpoint', 'ec2:CreateSecurityGroup', 'ec2:CreateNatGateway'],
  ...['ecr:CreateRepository', 'events:PutRule', 'iam:CreateRole', 'iam:PassRole', 'kms:CreateKey', 'kms:CreateGrant'],
  ...['lambda:CreateFunction', 'logs:CreateLogGroup', 's3:CreateBucket', 's3:PutBucketPolicy'],
  ...['s3:PutBucketPublicAccessBlock', 's3:PutEncryptionConfiguration', 'sns:CreateTopic'],
  ...['sqs:CreateQueue', 'ssm:PutParameter', 'states:CreateStateMachine', 'fsx:CreateFileSystem'],
  ...['budgets:ModifyBudget', 'chatbot:CreateSlackChannelConfiguration'],
  ...['sagemaker:CreateTrainingJob', 'sagemaker:CreateProcessingJob', 'servicequotas:GetServiceQuota'],
];

const TITLE = 'deployer permissions';
const ASSUME = 'sts:AssumeRole';

/**
 * What IAM's simulation says about the caller: whether policies of the organization deny what a deploy needs, which holds for every identity
 * of the account, and whether the caller may assume the role of the bootstrap stack with which the CDK deploys. Conditions of an
 * organization's policies are not evaluated as in a real call, so their denials are warnings.
 * https://docs.aws.amazon.com/IAM/latest/APIReference/API_OrganizationsDecisionDetail.html, 2026-11-27;
 * https://github.com/aws/aws-sdk/issues/102.
 */
export async function permissionCheck(environment: EnvironmentSpec): Promise<ResourceCheck> {
  const { region } = environment;
  const permission = 'iam:GetRole and iam:SimulatePrincipalPolicy on yourself';
  return inspect(TITLE, permission, `${DEPLOY_ACTIONS.length} actions and ${ASSUME}`, async () => {
    const iam = awsClient(IAMClient, { region, maxAttempts: 5 });
    const { Arn: caller = '' } = await awsClient(STSClient, { region, maxAttempts: 3 }).send(
      new GetCallerIdentityCommand({}),
    );
    // No policy of the account applies to its root user, and IAM simulates none.
    if (caller.endsWith(':root')) return [];
    const source = await principalOf(iam, caller);
    const account = await accountOf(environment);
    const partition = REGIONS[region]?.partition ?? 'aws';
    const role = `arn:${partition}:iam::${account}:role/cdk-${bootstrapQualifier()}-deploy-role-${account}-${region}`;
    const ask = { iam, source, region };
    const [actions, [assume]] = await Promise.all([simulate(ask, DEPLOY_ACTIONS, '*'), simulate(ask, [ASSUME], role)]);
    return [...organizationIssues([...actions, ...(assume ? [assume] : [])]), ...assumeIssues(assume, role, source)];
  });
}

/** The user or role whose policies apply to a caller: a session of a role has the role's, whose ARN has the path that the session lacks. */
async function principalOf(iam: IAMClient, caller: string): Promise<string> {
  const [, RoleName] = /:assumed-role\/([^/]+)\//.exec(caller) ?? [];
  if (RoleName === undefined) return caller;
  const { Role } = await iam.send(new GetRoleCommand({ RoleName }));
  return Role?.Arn ?? caller;
}

async function simulate(
  { iam, source, region }: { iam: IAMClient; source: string; region: string },
  actions: readonly string[],
  resource: string,
): Promise<EvaluationResult[]> {
  const question = {
    ...{ PolicySourceArn: source, ActionNames: [...actions], ResourceArns: [resource] },
    ContextEntries: [
      { ContextKeyName: 'aws:RequestedRegion', ContextKeyType: 'string' as const, ContextKeyValues: [region] },
    ],
  };
  return itemsOf(paginateSimulatePrincipalPolicy({ client: iam }, question), (page) => page.EvaluationResults);
}

const isDeniedByOrganization = ({ OrganizationsDecisionDetail: detail }: EvaluationResult): boolean =>
  detail?.AllowedByOrganizations === false;

function organizationIssues(results: readonly EvaluationResult[]): Issue[] {
  const denied = results.filter(isDeniedByOrganization).map(({ EvalActionName }) => EvalActionName);
  const [first] = denied;
  if (first === undefined) return [];
  return found('organization', 'warning', 'account', {
    must: 'must be allowed by the service control policies of the organization to make what the environment consists of',
    got: `${denied.length} denied actions, such as ${first}`,
    fix: 'ask the administrators of AWS Organizations; a policy with conditions, such as one that names regions, may allow the real calls',
  });
}

function assumeIssues(result: EvaluationResult | undefined, role: string, source: string): Issue[] {
  if (!result || result.EvalDecision === 'allowed' || isDeniedByOrganization(result)) return [];
  return found('assume', 'error', 'account', {
    must: `must let you assume ${role}`,
    got: `${result.EvalDecision} for ${source}`,
    fix: 'attach the policy for the user who deploys that slipway deployer-policy prints',
  });
}
