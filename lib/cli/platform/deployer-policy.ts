import { teamKeysOf } from '../../core/config/descriptor';
import type { EnvironmentSpec } from '../../core/config/environment-file';
import { namePrefix, runTableName } from '../../core/contracts/names';
import { bootstrapQualifier, DEFAULT_QUALIFIER } from '../environment/checks/bootstrap-qualifier';
import { requireEnvironment, requireFile } from '../environment/environment-file';
import { EXIT, UsageError } from '../exit';
import { type CommonOptions, readText } from '../inputs';
import { json, type Terminal } from '../terminal';
import {
  accountOf,
  boundaryName,
  boundaryOf,
  ownArn,
  type Policy,
  partitionOf,
  policy,
  roleStatements,
  type Statement,
  statement,
} from './deployer-roles';

const BOOTSTRAP_ROLES = ['deploy-role', 'file-publishing-role', 'lookup-role'];

/**
 * `slipway deployer-policy ENVIRONMENT`: prints the policy for the person or pipeline that deploys, the policy for CloudFormation that
 * replaces AdministratorAccess, and the bootstrap command that uses it. CloudFormation may make roles with a permissions boundary only,
 * because it could pass a role without one; if the file names none, the verb prints one. Offline.
 */
export function deployerPolicy(given: string, options: CommonOptions, terminal: Terminal): number {
  const file = requireFile(given);
  const { specs } = requireEnvironment(file, readText(file), options);
  const chosen = specs.filter(({ region }) => options.region === undefined || region === options.region);
  const [spec] = chosen;
  if (!spec)
    throw new UsageError(`--region: must be a region of ${file}, got ${options.region}; use one from the file`);
  const [execution = policy([]), ...further] = inPolicies(executionOf(spec, chosen));
  const answer = {
    deployer: deployerOf(chosen),
    ...(spec.iam.permissionsBoundary === undefined && { boundary: boundaryOf(spec) }),
    execution,
    ...(further.length > 0 && { furtherExecution: further }),
    bootstrap: chosen.map((one) => bootstrapCommand(one, further.length + 1)),
  };
  if (options.json) terminal.out(json(answer));
  else printPolicies(spec, answer, terminal);
  return EXIT.done;
}

const policyName = ({ name }: EnvironmentSpec, index = 0): string =>
  `slipway-${name}-deploy${index === 0 ? '' : `-${index + 1}`}`;
/** The person or pipeline only assumes the roles of the bootstrap stack. */
function deployerOf(specs: readonly EnvironmentSpec[]): Policy {
  const roles = specs.flatMap((spec) =>
    BOOTSTRAP_ROLES.map((role) =>
      ownArn(spec, 'iam', `role/cdk-${bootstrapQualifier()}-${role}-${accountOf(spec)}-${spec.region}`),
    ),
  );
  return policy([statement('DeployThroughBootstrapRoles', ['sts:AssumeRole'], roles)]);
}

/** Services that the stack uses, restricted by resource names where the environment fixes them, otherwise by region or tag. */
function executionOf(spec: EnvironmentSpec, specs: readonly EnvironmentSpec[]): Statement[] {
  const { name } = spec;
  const arns = (service: string, ...resources: string[]) =>
    specs.flatMap((one) => resources.map((resource) => ownArn(one, service, resource, one.region)));
  const global = (service: string, kind: string) => [ownArn(spec, service, `${kind}/slipway-${name}-*`)];
  const functions = [`function:slipway-${name}-*`, `function:Slipway-${name}-*`, 'event-source-mapping:*'];
  const table = `table/${runTableName(name)}`;
  return [
    ...objectStatements(spec),
    ...roleStatements(spec),
    statement('Functions', ['lambda:*'], arns('lambda', ...functions)),
    statement('Table', ['dynamodb:*'], arns('dynamodb', table, `${table}/*`)),
    statement('Queues', ['sqs:*'], arns('sqs', `Slipway-${name}-*`)),
    statement('Topics', ['sns:*'], arns('sns', `Slipway-${name}-*`)),
    statement('Rules', ['events:*'], arns('events', `rule/Slipway-${name}-*`)),
    statement('Logs', ['logs:*'], arns('logs', 'log-group:*')),
    statement('Alarms', ['cloudwatch:*'], arns('cloudwatch', `alarm:Slipway-${name}-*`)),
    statement('Dashboard', ['cloudwatch:*Dashboard*'], [ownArn(spec, 'cloudwatch', `dashboard/slipway-${name}-*`)]),
    statement('Waiters', ['states:*'], arns('states', 'stateMachine:*')),
    statement('Images', ['ecr:*'], arns('ecr', `repository/${namePrefix(name)}`)),
    statement('Builds', ['codebuild:*'], arns('codebuild', 'project/*')),
    statement('Parameters', PARAMETER_ACTIONS, arns('ssm', ...parametersOf(name))),
    ...keyStatements(spec, arns('kms', 'key/*')),
    statement('Network', NETWORK_ACTIONS, ['*']),
    statement('FileSystems', ['fsx:*'], arns('fsx', 'file-system/*', 'association/*')),
    // Budgets and chat channels are not regional.
    statement('Budgets', ['budgets:*'], global('budgets', 'budget')),
    statement('ChatChannels', ['chatbot:*'], global('chatbot', 'chat-configuration/slack-channel')),
    statement('WithoutResource', ACTIONS_WITHOUT_RESOURCE, ['*']),
  ];
}

/** https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html, 2026-11-26. */
const MANAGED_POLICY = 6_144;

/** As few managed policies as the statements fit into. */
function inPolicies(statements: readonly Statement[]): Policy[] {
  const policies: Policy[] = [];
  for (const one of statements) {
    const last = policies.at(-1);
    const longer = policy([...(last?.Statement ?? []), one]);
    if (last && JSON.stringify(longer).length <= MANAGED_POLICY) policies[policies.length - 1] = longer;
    else policies.push(policy([one]));
  }
  return policies;
}

/**
 * Actions of CloudFormation's handlers that are authorized on no resource, so that a statement with an ARN never matches them; a test
 * compares the policy with the handlers' permissions of every resource type.
 */
const ACTIONS_WITHOUT_RESOURCE = [
  'lambda:CreateEventSourceMapping',
  'logs:DescribeLogGroups',
  'kms:CreateKey',
  'fsx:DescribeFileSystems',
  'fsx:DescribeDataRepositoryAssociations',
  'sns:GetSubscriptionAttributes',
  'sns:SetSubscriptionAttributes',
  'sns:Unsubscribe',
  'chatbot:CreateSlackChannelConfiguration',
  'chatbot:DescribeSlackChannelConfigurations',
  'chatbot:ListTagsForResource',
];

function objectStatements(spec: EnvironmentSpec): Statement[] {
  const bucket = (name: string) => [`arn:${partitionOf(spec)}:s3:::${name}`, `arn:${partitionOf(spec)}:s3:::${name}/*`];
  const { buckets, fsxLustre } = spec.storage;
  return [
    // FSx validates access to the bucket of a file system with the permissions of its caller.
    ...(fsxLustre && buckets?.data
      ? [statement('BucketOfLustre', ['s3:Get*', 's3:List*', 's3:PutObject'], bucket(buckets.data))]
      : []),
    statement('Buckets', ['s3:*'], bucket(`slipway-${spec.name}-*`)),
    statement('Assets', ['s3:GetObject*', 's3:GetBucket*', 's3:List*'], bucket(`cdk-${bootstrapQualifier()}-assets-*`)),
  ];
}

const PARAMETER_ACTIONS = [
  'ssm:*Parameter*',
  'ssm:AddTagsToResource',
  'ssm:ListTagsForResource',
  'ssm:RemoveTagsFromResource',
];

const parametersOf = (name: string): string[] => [
  `parameter/slipway/environments/${name}`,
  `parameter/slipway/environments/${name}/*`,
  `parameter/slipway/storage/${namePrefix(name)}/*`,
  `parameter/cdk-bootstrap/${bootstrapQualifier()}/version`,
];

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
  // An endpoint with a private name gets a hosted zone.
  'route53:AssociateVPCWithHostedZone',
];

function keyStatements(spec: EnvironmentSpec, own: string[]): Statement[] {
  const tagged = { StringEquals: { 'aws:ResourceTag/slipway:environment': spec.name } };
  const existing = existingKeys(spec);
  return [
    statement('TagKeys', ['kms:TagResource'], own),
    statement('OwnKeys', ['kms:*'], own, tagged),
    ...(existing.length > 0 ? [statement('ExistingKeys', USE_KEY, existing)] : []),
  ];
}

/** Table, repository and file system get grants for their key with the permissions of CloudFormation. */
const USE_KEY = [
  'kms:CreateGrant',
  'kms:Decrypt',
  'kms:DescribeKey',
  'kms:Encrypt',
  'kms:GenerateDataKey*',
  'kms:GetKeyPolicy',
  'kms:RetireGrant',
  'kms:RevokeGrant',
];

/** Keys that the file names, which do not have the tag of the environment. */
const existingKeys = ({ storage, teams }: EnvironmentSpec): string[] => [
  ...new Set(
    [storage.kmsKeyArn, ...Object.values(teamKeysOf(teams))].filter((key) => key?.startsWith('arn:')) as string[],
  ),
];

/** The boundary of the roles is not that of CloudFormation's own role, which `--custom-permissions-boundary` would set. */
function bootstrapCommand(spec: EnvironmentSpec, policies: number): string {
  const names = Array.from({ length: policies }, (_, i) => policyName(spec, i));
  return [
    `npx cdk bootstrap aws://${accountOf(spec)}/${spec.region}`,
    ...(bootstrapQualifier() === DEFAULT_QUALIFIER ? [] : [`--qualifier ${bootstrapQualifier()}`]),
    `--cloudformation-execution-policies ${names.map((one) => ownArn(spec, 'iam', `policy/${one}`)).join(',')}`,
  ].join(' ');
}

function printPolicies(
  spec: EnvironmentSpec,
  answer: { deployer: Policy; boundary?: Policy; execution: Policy; furtherExecution?: Policy[]; bootstrap: string[] },
  terminal: Terminal,
): void {
  terminal.err(`# policy for the user who deploys ${spec.name}`);
  terminal.out(json(answer.deployer));
  if (answer.boundary) {
    const name = boundaryName(spec);
    terminal.err(
      `# permissions boundary, as the managed policy ${name}; name it in the environment file before the first deploy: iam: { permissionsBoundary: ${name} }`,
    );
    terminal.out(json(answer.boundary));
  }
  for (const [i, one] of [answer.execution, ...(answer.furtherExecution ?? [])].entries()) {
    terminal.err(`# policy for CloudFormation, as the managed policy ${policyName(spec, i)}`);
    terminal.out(json(one));
  }
  for (const command of answer.bootstrap) terminal.err(`# once: ${command}`);
  if (!answer.boundary)
    terminal.err(
      '# if the account requires a boundary on every role, add --apply-permissions-boundary-to-all-roles --custom-permissions-boundary with the name of one that allows what the policies for CloudFormation allow',
    );
}
