import { REGIONS } from '../../core/catalog/regions';
import { managedPolicyArn } from '../../core/config/environment/company';
import type { EnvironmentSpec } from '../../core/config/environment-file';
import { arnOf } from '../../core/contracts/names';

export interface Statement {
  Sid: string;
  Effect: 'Allow';
  Action: string[];
  Resource: string[];
  Condition?: Record<string, Record<string, string | string[]>>;
}
export interface Policy {
  Version: '2012-10-17';
  Statement: Statement[];
}

const ACCOUNT = '<account>';

/** Name of the boundary for an environment whose file names none. */
export const boundaryName = ({ name }: EnvironmentSpec): string => `slipway-${name}-boundary`;
/** The account of the file, or a placeholder. */
export const accountOf = ({ account }: EnvironmentSpec): string => account ?? ACCOUNT;
export const partitionOf = ({ region }: EnvironmentSpec): string => REGIONS[region]?.partition ?? 'aws';

/** The ARN of a resource in the account of an environment. */
export const ownArn = (spec: EnvironmentSpec, service: string, resource: string, region = ''): string =>
  arnOf({ partition: partitionOf(spec), region, account: accountOf(spec) }, service, resource);

/** Patterns of the roles that the stack creates. */
function ownRoles(spec: EnvironmentSpec): string[] {
  const { rolePath = '/', rolePrefix } = spec.iam;
  const names = rolePrefix === undefined ? [`slipway-${spec.name}-*`, `Slipway-${spec.name}-*`] : [`${rolePrefix}*`];
  return names.map((name) => ownArn(spec, 'iam', `role${rolePath}${name}`));
}

export const policy = (Statement: Statement[]): Policy => ({ Version: '2012-10-17', Statement });
export const statement = (
  Sid: string,
  Action: string[],
  Resource: string[],
  Condition?: Statement['Condition'],
): Statement => ({
  Sid,
  Effect: 'Allow',
  Action,
  Resource,
  ...(Condition && { Condition }),
});

/** Actions for which IAM checks the permissions boundary of the role. */
const MAKE_ROLES = [
  'iam:CreateRole',
  'iam:PutRolePolicy',
  'iam:AttachRolePolicy',
  'iam:DetachRolePolicy',
  'iam:DeleteRolePolicy',
  'iam:PutRolePermissionsBoundary',
];
const KEEP_ROLES = [
  'iam:GetRole*',
  'iam:ListRole*',
  'iam:ListAttachedRolePolicies',
  'iam:DeleteRole',
  'iam:UpdateRole*',
  'iam:UpdateAssumeRolePolicy',
  'iam:TagRole',
  'iam:UntagRole',
];

const KEEP_POLICIES = [
  'iam:CreatePolicy*',
  'iam:DeletePolicy*',
  'iam:GetPolicy*',
  'iam:ListPolicyVersions',
  'iam:ListEntitiesForPolicy',
  'iam:TagPolicy',
  'iam:UntagPolicy',
];
/** Services whose resources bring a service-linked role. */
const LINKED_SERVICES = [
  'fsx.amazonaws.com',
  's3.data-source.lustre.fsx.amazonaws.com',
  'management.chatbot.amazonaws.com',
];

/** Roles by path and prefix, none of which can be created or changed without the boundary, and the managed policies of large environments. */
export function roleStatements(spec: EnvironmentSpec): Statement[] {
  const roles = ownRoles(spec);
  const place = { partition: partitionOf(spec), account: accountOf(spec) };
  const boundary = managedPolicyArn(spec.iam.permissionsBoundary ?? boundaryName(spec), place);
  const linked = ownArn(spec, 'iam', 'role/aws-service-role/*');
  return [
    statement('MakeRoles', MAKE_ROLES, roles, {
      StringEquals: { 'iam:PermissionsBoundary': boundary },
    }),
    statement('KeepRoles', KEEP_ROLES, roles),
    statement('PassRoles', ['iam:PassRole'], roles),
    statement('KeepPolicies', KEEP_POLICIES, [ownArn(spec, 'iam', `policy/Slipway-${spec.name}-*`)]),
    statement('MakeLinkedRoles', ['iam:CreateServiceLinkedRole'], [linked], {
      StringEquals: { 'iam:AWSServiceName': LINKED_SERVICES },
    }),
    // https://docs.aws.amazon.com/fsx/latest/LustreGuide/setting-up.html#fsx-adding-permissions-s3, 2026-11-27.
    statement(
      'LinkedRoleOfLustre',
      ['iam:AttachRolePolicy', 'iam:PutRolePolicy'],
      [linked.replace('*', 's3.data-source.lustre.fsx.*')],
    ),
  ];
}

/** Everything that a role of the stack may do at most: no change of IAM, and no service that the stack does not use. */
export function boundaryOf(spec: EnvironmentSpec): Policy {
  const quotas = ownArn(spec, 'iam', 'role/aws-service-role/servicequotas.amazonaws.com/*');
  return policy([
    statement('ServicesOfTheStack', BOUNDARY_ACTIONS, ['*']),
    statement('OwnRoles', ['iam:PassRole', 'iam:GetRole'], ownRoles(spec)),
    statement('QuotaRequests', ['iam:CreateServiceLinkedRole'], [quotas]),
  ]);
}

const BOUNDARY_ACTIONS = [
  'ce:GetCostAndUsage',
  'cloudformation:*',
  'cloudwatch:*',
  'codeartifact:*',
  'codebuild:*',
  'dynamodb:*',
  'ec2:*NetworkInterface*',
  'ec2:*SecurityGroup*',
  'ec2:Describe*',
  'ecr:*',
  'events:*',
  'kms:*',
  'lambda:GetFunction*',
  'lambda:InvokeFunction',
  'logs:*',
  's3:*',
  'sagemaker-mlflow:*',
  'sagemaker:*',
  'secretsmanager:GetSecretValue',
  'servicequotas:*',
  'sns:*',
  'sqs:*',
  'ssm:*',
  'ssmmessages:*',
  'states:*',
  'sts:GetServiceBearerToken',
];
