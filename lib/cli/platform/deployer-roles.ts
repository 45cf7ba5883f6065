import { REGIONS } from '../../core/catalog/regions';
import { managedPolicyArn } from '../../core/config/environment/company';
import type { EnvironmentSpec } from '../../core/config/environment-file';

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
export function roleStatements(spec: EnvironmentSpec, names: readonly string[]): Statement[] {
  const { rolePath = '/', rolePrefix, permissionsBoundary } = spec.iam;
  const wanted = rolePrefix === undefined ? names : [`${rolePrefix}*`];
  const base = `arn:${partitionOf(spec)}:iam::${accountOf(spec)}`;
  const roles = wanted.map((name) => `${base}:role${rolePath}${name}`);
  const place = { partition: partitionOf(spec), account: accountOf(spec) };
  const boundary = managedPolicyArn(permissionsBoundary ?? boundaryName(spec), place);
  const bounded = { StringEquals: { 'iam:PermissionsBoundary': boundary } };
  const linked = `${base}:role/aws-service-role/*`;
  return [
    statement('MakeRoles', MAKE_ROLES, roles, bounded),
    statement('KeepRoles', KEEP_ROLES, roles),
    statement('PassRoles', ['iam:PassRole'], roles),
    statement('KeepPolicies', KEEP_POLICIES, [`${base}:policy/Slipway-${spec.name}-*`]),
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
  const { rolePath = '/', rolePrefix } = spec.iam;
  const base = `arn:${partitionOf(spec)}:iam::${accountOf(spec)}:role`;
  const names = rolePrefix === undefined ? [`slipway-${spec.name}-*`, `Slipway-${spec.name}-*`] : [`${rolePrefix}*`];
  return policy([
    statement('ServicesOfTheStack', BOUNDARY_ACTIONS, ['*']),
    statement(
      'OwnRoles',
      ['iam:PassRole', 'iam:GetRole'],
      names.map((name) => `${base}${rolePath}${name}`),
    ),
    statement(
      'QuotaRequests',
      ['iam:CreateServiceLinkedRole'],
      [`${base}/aws-service-role/servicequotas.amazonaws.com/*`],
    ),
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
