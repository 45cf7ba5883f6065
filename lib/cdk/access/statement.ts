import { isDeepStrictEqual } from 'node:util';
import { CfnResource, Stack, Token } from 'aws-cdk-lib';
import * as iam from 'aws-cdk-lib/aws-iam';
import type { Construct, IConstruct } from 'constructs';
import { REGIONS } from '../../core/catalog/regions';
import { arnOf, JOB_LOG_GROUPS } from '../../core/contracts/names';
import { type TemplateResource, TemplateValues } from '../../core/contracts/template-values';
import { ANY_ACCOUNT } from '../../shared/environment/template-sizes';
import { acknowledge } from '../acknowledged-checks';

/** Properties of a name or path, as the constructs of CloudFormation's resources call them. */
const NAMED_BY = [
  'roleName',
  'path',
  'functionName',
  'name',
  'topicName',
  'queueName',
  'bucketName',
  'tableName',
  'repositoryName',
];

/**
 * Measures the statements of a stack that has all resources to which they refer: their length as JSON, with every reference replaced by the
 * longest text that it may stand for.
 */
function longestStatements(stack: Stack): (statement: iam.PolicyStatement) => number {
  const resources = stack.node.findAll().filter((child) => CfnResource.isCfnResource(child));
  const { region, stackName, account } = stack;
  const { partition = 'aws', domain: urlSuffix = 'amazonaws.com' } = REGIONS[region] ?? {};
  const place = { partition, account: Token.isUnresolved(account) ? ANY_ACCOUNT : account, region, urlSuffix };
  const byId = resources.map((resource) => [String(stack.resolve(resource.logicalId)), named(stack, resource)]);
  const values = new TemplateValues(Object.fromEntries(byId), { ...place, stack: stackName });
  return (statement) => JSON.stringify(values.resolve(stack.resolve(statement.toStatementJson()))).length + 1;
}

function named(stack: Stack, resource: CfnResource): TemplateResource {
  const given = resource as unknown as Record<string, unknown> & { rawOverrides?: { Properties?: object } };
  const names = NAMED_BY.flatMap((name) => {
    const value: unknown = stack.resolve(given[name]);
    return value === undefined ? [] : [[`${name.charAt(0).toUpperCase()}${name.slice(1)}`, value] as const];
  });
  const overrides = stack.resolve(given.rawOverrides?.Properties) as object | undefined;
  return { Type: resource.cfnResourceType, Properties: { ...Object.fromEntries(names), ...overrides } };
}

/** A statement of an IAM policy with exact actions and resources, and a reason for each wildcard. */
export interface ExactStatement extends Pick<iam.PolicyStatementProps, 'conditions'> {
  /** Purpose of the statement, in letters and digits; unique within a policy. */
  readonly sid: string;
  /** Actions, such as `s3:GetObject`; no wildcard. */
  readonly actions: string[];
  /** ARNs; one that contains `*` needs `wildcard`. */
  readonly resources: string[];
  /** ARNs that a denial excludes: it applies to everything else, and `resources` is empty. @default - it applies to `resources` */
  readonly notResources?: string[];
  /** Whether the statement denies. @default false */
  readonly deny?: boolean;
  /**
   * Why the resources contain `*`. Required in that case: otherwise the check of the template fails. @default - no resource contains `*`
   */
  readonly wildcard?: string;
}

/**
 * Adds statements to a role, and acknowledges each `*` in their resources individually with the given reason. Statements that do not fit
 * into the inline policy of the role become managed policies.
 */
export function allow(role: iam.Role, ...statements: readonly ExactStatement[]): void {
  for (const statement of statements) {
    for (const part of policyStatements(role, statement)) role.addToPolicy(part);
    if (statement.wildcard) acknowledgeResources(role, statement.resources, statement.wildcard);
  }
}

/** An ARN has about 90 characters, and a managed policy 6,144. */
const MAX_RESOURCES = 40;

/** A statement as the CDK's; one with many resources in parts, each of which fits into a managed policy. */
function policyStatements(scope: IConstruct, { wildcard, deny, ...statement }: ExactStatement): iam.PolicyStatement[] {
  const effect = deny ? iam.Effect.DENY : iam.Effect.ALLOW;
  const { resources, sid } = statement;
  const parts = Array.from({ length: Math.max(1, Math.ceil(resources.length / MAX_RESOURCES)) }, (_, i) =>
    resources.slice(i * MAX_RESOURCES, (i + 1) * MAX_RESOURCES),
  );
  return parts.map(
    (part, i) =>
      new MeasuredStatement(scope, {
        ...statement,
        sid: i === 0 ? sid : `${sid}${i + 1}`,
        resources: compact(part),
        effect,
      }),
  );
}

/** Number of resources from which the text of a list, with one reference for all of them, is worth reading. */
const MANY_RESOURCES = 10;

/** Many resources below the same one as one text, in which the reference to it is written once. */
function compact(resources: string[]): string[] {
  const [base] = /^\$\{Token\[[^\]]+\]\}/.exec(resources[0] ?? '') ?? [];
  if (resources.length < MANY_RESOURCES || !base || !resources.every((one) => one.startsWith(base))) return resources;
  const text = resources.map((one) => `\${base}${one.slice(base.length)}`).join('|');
  return [Token.asString({ 'Fn::Split': ['|', { 'Fn::Sub': [text, { base }] }] })];
}

/** https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html, without the text around the statements. */
const MANAGED_POLICY = 6_144 - 100;

/** Number of teams up to which no roles share a policy, as in environments of earlier versions. */
export const FEW_TEAMS = 10;

export type SharedPolicies = ReturnType<typeof sharedPolicies>;

/** Policies for each of many roles, with the statements that all lists contain; none when the roles are to share nothing. */
export function sharedPolicies(
  scope: Construct,
  [first = [], ...others]: readonly (readonly ExactStatement[])[],
  isShared: boolean,
) {
  const isCommon = (one: ExactStatement) => others.every((list) => list.some((other) => isDeepStrictEqual(other, one)));
  const common = isShared ? first.filter(isCommon) : [];
  return {
    policies: managedPolicies(scope, common),
    /** The statements that are not in these policies. */
    own: (statements: readonly ExactStatement[]) =>
      statements.filter(({ sid }) => !common.some((one) => one.sid === sid)),
  };
}

/** As few managed policies as the statements fit into. The resources to which these refer exist already. */
function managedPolicies(scope: Construct, given: readonly ExactStatement[]): iam.ManagedPolicy[] {
  const lengthOf = longestStatements(Stack.of(scope));
  const groups: { size: number; statements: iam.PolicyStatement[] }[] = [];
  for (const statement of given.flatMap((one) => policyStatements(scope, one))) {
    const size = lengthOf(statement);
    const group = groups.find((one) => one.size + size <= MANAGED_POLICY);
    if (group) Object.assign(group, { size: group.size + size, statements: [...group.statements, statement] });
    else groups.push({ size, statements: [statement] });
  }
  for (const { wildcard, resources } of given) if (wildcard) acknowledgeResources(scope, resources, wildcard);
  return groups.map(({ statements }, i) => new iam.ManagedPolicy(scope, `Shared${i + 1}`, { statements }));
}

const measures = new WeakMap<Stack, ReturnType<typeof longestStatements>>();

/** The CDK divides the policy of a role by the sizes of its statements, which it estimates without the values of references. */
class MeasuredStatement extends iam.PolicyStatement {
  constructor(
    private readonly scope: IConstruct,
    props: iam.PolicyStatementProps,
  ) {
    super(props);
  }

  /** Called while the template is written, when all resources exist. */
  override _estimateSize(): number {
    const stack = Stack.of(this.scope);
    const lengthOf = measures.get(stack) ?? longestStatements(stack);
    measures.set(stack, lengthOf);
    return lengthOf(this);
  }
}

/** Acknowledges the `*` in these resources of the policies below `scope`. */
export function acknowledgeResources(scope: IConstruct, resources: readonly string[], reason: string): void {
  for (const resource of resources) {
    const name = flatten(Stack.of(scope).resolve(resource));
    if (name.includes('*')) acknowledge(scope, { id: `AwsSolutions-IAM5[Resource::${name}]`, reason });
  }
}

/** A resource in the notation of cdk-nag: references in angle brackets, joins concatenated. */
function flatten(node: unknown): string {
  if (typeof node === 'string') return node.replace(/\$\{/g, '<').replace(/\}/g, '>');
  const reference = node as Record<string, unknown>;
  if (reference['Fn::Join']) {
    const [delimiter, items] = reference['Fn::Join'] as [string, unknown[]];
    return items.map(flatten).join(delimiter);
  }
  if (reference['Fn::GetAtt']) {
    const [resource, attribute] = reference['Fn::GetAtt'] as [string, string];
    return `<${resource}.${attribute}>`;
  }
  return reference.Ref ? `<${String(reference.Ref)}>` : JSON.stringify(node);
}

/** Where the resources of an ARN are. All values may be tokens. */
export type Place = Pick<Stack, 'partition' | 'region' | 'account'>;

/** ARNs of the jobs of an environment, which are named after it. */
export const jobsOf = (place: Place & { readonly environment: string }, kind: 'training-job' | 'processing-job') =>
  arnOf(place, 'sagemaker', `${kind}/${place.environment}-*`);

/** The place of a stack. */
export function placeOf(scope: IConstruct): Place {
  const { partition, region, account } = Stack.of(scope);
  return { partition, region, account };
}

/** ARN of a log group by its name, in the form used in policies for CloudWatch Logs. */
export const logGroupArn = (place: Place, name: string): string => arnOf(place, 'logs', `log-group:${name}`);

/** ARNs of the groups, each with and without the suffix `:*`: actions on a log group may be authorized on either. */
export const logGroupArns = (place: Place, names: readonly string[]): string[] =>
  names.map((name) => logGroupArn(place, name)).flatMap((group) => [group, `${group}:*`]);

/** Names of the log groups that all SageMaker jobs share. */
export const SHARED_LOG_GROUPS: readonly string[] = Object.values(JOB_LOG_GROUPS);
