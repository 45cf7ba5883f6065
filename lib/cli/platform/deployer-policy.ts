import { REGIONS } from '../../catalog/regions';
import { managedPolicyArn } from '../../spec/environment/company';
import type { EnvironmentSpec } from '../../spec/environment-file';
import { requireFile } from '../environment/deployed-needs';
import { requireEnvironment } from '../environment/environment-file';
import { EXIT, UsageError } from '../exit';
import { type CommonOptions, readText } from '../inputs';
import { json, type Terminal } from '../terminal';

interface Statement {
  Sid: string;
  Effect: 'Allow';
  Action: string[];
  Resource: string[];
  Condition?: Record<string, Record<string, string>>;
}
interface Policy {
  Version: '2012-10-17';
  Statement: Statement[];
}

/** The default qualifier of the CDK: https://docs.aws.amazon.com/cdk/v2/guide/bootstrapping-env.html, 2026-11-22. */
const QUALIFIER = 'hnb659fds';
const BOOTSTRAP_ROLES = ['deploy-role', 'file-publishing-role', 'lookup-role'];
const ACCOUNT = '<account>';

/**
 * `slipway deployer-policy ENVIRONMENT`: prints the policy for the person or pipeline that deploys, the policy for CloudFormation that
 * replaces AdministratorAccess, and the bootstrap command that uses it. Offline.
 */
export function deployerPolicy(given: string, options: CommonOptions, terminal: Terminal): number {
  const file = requireFile(given);
  const { specs } = requireEnvironment(file, readText(file), options);
  const chosen = specs.filter(({ region }) => options.region === undefined || region === options.region);
  const [spec] = chosen;
  if (!spec)
    throw new UsageError(`--region: must be a region of ${file}, got ${options.region}; use one from the file`);
  const answer = {
    deployer: deployerOf(chosen),
    execution: executionOf(chosen),
    bootstrap: chosen.map(bootstrapCommand),
  };
  if (options.json) terminal.out(json(answer));
  else printPolicies(spec.name, answer, terminal);
  return EXIT.done;
}

const policyName = ({ name }: EnvironmentSpec): string => `slipway-${name}-deploy`;
const accountOf = ({ account }: EnvironmentSpec): string => account ?? ACCOUNT;
const partitionOf = ({ region }: EnvironmentSpec): string => REGIONS[region]?.partition ?? 'aws';

/** The person or pipeline only assumes the roles of the bootstrap stack. */
function deployerOf(specs: readonly EnvironmentSpec[]): Policy {
  const roles = specs.flatMap((spec) =>
    BOOTSTRAP_ROLES.map(
      (role) =>
        `arn:${partitionOf(spec)}:iam::${accountOf(spec)}:role/cdk-${QUALIFIER}-${role}-${accountOf(spec)}-${spec.region}`,
    ),
  );
  return policy([statement('DeployThroughBootstrapRoles', ['sts:AssumeRole'], roles)]);
}

/** Services that the stack uses, restricted by resource names where the environment fixes them, otherwise by region or tag. */
function executionOf(specs: readonly EnvironmentSpec[]): Policy {
  const [spec] = specs;
  if (!spec) return policy([]);
  const arns: Arns = (service, ...resources) =>
    specs.flatMap((one) =>
      resources.map((resource) => `arn:${partitionOf(one)}:${service}:${one.region}:${accountOf(one)}:${resource}`),
    );
  const names = [`slipway-${spec.name}-*`, `Slipway-${spec.name}-*`];
  return policy([
    ...objectStatements(spec),
    ...roleStatements(spec, names),
    ...controlStatements(spec, names, arns),
    ...watchStatements(spec, arns),
    ...imageStatements(spec, arns),
    ...networkStatements(spec, arns),
    ...spendStatements(spec),
  ]);
}

/** ARNs of a service's resources in each region of the environment. */
type Arns = (service: string, ...resources: string[]) => string[];

function objectStatements(spec: EnvironmentSpec): Statement[] {
  const bucket = (name: string) => [`arn:${partitionOf(spec)}:s3:::${name}`, `arn:${partitionOf(spec)}:s3:::${name}/*`];
  return [
    statement('Buckets', ['s3:*'], bucket(`slipway-${spec.name}-*`)),
    statement('Assets', ['s3:GetObject*', 's3:GetBucket*', 's3:List*'], bucket(`cdk-${QUALIFIER}-assets-*`)),
  ];
}

function controlStatements({ name }: EnvironmentSpec, names: readonly string[], arns: Arns): Statement[] {
  return [
    statement(
      'Functions',
      ['lambda:*'],
      arns('lambda', ...names.map((n) => `function:${n}`), 'event-source-mapping:*'),
    ),
    statement('Table', ['dynamodb:*'], arns('dynamodb', `table/slipway-${name}-runs`, `table/slipway-${name}-runs/*`)),
    statement('Queues', ['sqs:*'], arns('sqs', `Slipway-${name}-*`)),
    statement('Topics', ['sns:*'], arns('sns', `Slipway-${name}-*`)),
    statement('Rules', ['events:*'], arns('events', `rule/Slipway-${name}-*`)),
  ];
}

function watchStatements(spec: EnvironmentSpec, arns: Arns): Statement[] {
  const dashboard = `arn:${partitionOf(spec)}:cloudwatch::${accountOf(spec)}:dashboard/slipway-${spec.name}-*`;
  return [
    statement('Logs', ['logs:*'], arns('logs', 'log-group:*')),
    statement('Alarms', ['cloudwatch:*'], arns('cloudwatch', `alarm:Slipway-${spec.name}-*`)),
    statement('Dashboard', ['cloudwatch:*Dashboard*'], [dashboard]),
    statement('Waiters', ['states:*'], arns('states', 'stateMachine:*')),
  ];
}

function imageStatements({ name }: EnvironmentSpec, arns: Arns): Statement[] {
  const parameters = [
    `parameter/slipway/environments/${name}`,
    `parameter/slipway/environments/${name}/*`,
    `parameter/slipway/storage/slipway-${name}/*`,
    `parameter/cdk-bootstrap/${QUALIFIER}/version`,
  ];
  return [
    statement('Images', ['ecr:*'], arns('ecr', `repository/slipway-${name}`)),
    statement('Builds', ['codebuild:*'], arns('codebuild', 'project/*')),
    statement(
      'Parameters',
      ['ssm:*Parameter*', 'ssm:AddTagsToResource', 'ssm:RemoveTagsFromResource'],
      arns('ssm', ...parameters),
    ),
  ];
}

const NETWORK_ACTIONS = [
  'ec2:*Vpc*',
  'ec2:*Subnet*',
  'ec2:*SecurityGroup*',
  'ec2:*Route*',
  'ec2:*FlowLogs',
  'ec2:*InternetGateway*',
  'ec2:*NatGateway*',
  'ec2:*Address*',
  'ec2:CreateTags',
  'ec2:DeleteTags',
  'ec2:Describe*',
];

function networkStatements({ name }: EnvironmentSpec, arns: Arns): Statement[] {
  const tagged = { StringEquals: { 'aws:ResourceTag/slipway:environment': name } };
  return [
    statement('MakeKeys', ['kms:CreateKey', 'kms:TagResource'], ['*']),
    statement('OwnKeys', ['kms:*'], arns('kms', 'key/*'), tagged),
    statement('Network', NETWORK_ACTIONS, ['*']),
    statement('FileSystems', ['fsx:*'], arns('fsx', '*')),
  ];
}

/** Budgets and chat channels are not regional. */
function spendStatements(spec: EnvironmentSpec): Statement[] {
  const global = (service: string, resource: string) => [
    `arn:${partitionOf(spec)}:${service}::${accountOf(spec)}:${resource}/slipway-${spec.name}-*`,
  ];
  return [
    statement('Budgets', ['budgets:*'], global('budgets', 'budget')),
    statement('ChatChannels', ['chatbot:*'], global('chatbot', 'chat-configuration/slack-channel')),
  ];
}

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

/** Roles by path and prefix; if the environment has a boundary, no role can be created or changed without it. */
function roleStatements(spec: EnvironmentSpec, names: readonly string[]): Statement[] {
  const { rolePath = '/', rolePrefix, permissionsBoundary } = spec.iam;
  const wanted = rolePrefix === undefined ? names : [`${rolePrefix}*`];
  const base = `arn:${partitionOf(spec)}:iam::${accountOf(spec)}`;
  const roles = wanted.map((name) => `${base}:role${rolePath}${name}`);
  const place = { partition: partitionOf(spec), account: accountOf(spec) };
  const bounded =
    permissionsBoundary === undefined
      ? undefined
      : { StringEquals: { 'iam:PermissionsBoundary': managedPolicyArn(permissionsBoundary, place) } };
  return [
    statement('MakeRoles', MAKE_ROLES, roles, bounded),
    statement('KeepRoles', KEEP_ROLES, roles),
    statement('PassRoles', ['iam:PassRole'], roles),
  ];
}

const policy = (Statement: Statement[]): Policy => ({ Version: '2012-10-17', Statement });
const statement = (
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

function bootstrapCommand(spec: EnvironmentSpec): string {
  const { permissionsBoundary: boundary } = spec.iam;
  const name = boundary?.replace(/^arn:.*:policy\//, '');
  return [
    `npx cdk bootstrap aws://${accountOf(spec)}/${spec.region}`,
    `--cloudformation-execution-policies arn:${partitionOf(spec)}:iam::${accountOf(spec)}:policy/${policyName(spec)}`,
    ...(name ? [`--custom-permissions-boundary ${name}`] : []),
  ].join(' ');
}

function printPolicies(
  name: string,
  answer: { deployer: Policy; execution: Policy; bootstrap: string[] },
  terminal: Terminal,
): void {
  terminal.err(`# policy for the user who deploys ${name}`);
  terminal.out(json(answer.deployer));
  terminal.err(`# policy for CloudFormation, as the managed policy slipway-${name}-deploy`);
  terminal.out(json(answer.execution));
  for (const command of answer.bootstrap) terminal.err(`# once: ${command}`);
}
