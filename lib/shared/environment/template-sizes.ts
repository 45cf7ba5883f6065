import { REGIONS } from '../../core/catalog/regions';
import { parseJson } from '../../core/config/formats/json';
import { type Issue, issue } from '../../core/config/issue';
import { type TemplatePlace, type TemplateResource, TemplateValues } from '../../core/contracts/template-values';

/** A template as CloudFormation receives it. */
export interface SentTemplate {
  Resources?: Readonly<Record<string, TemplateResource>>;
  Outputs?: Readonly<Record<string, unknown>>;
  Parameters?: Readonly<Record<string, unknown>>;
}

/** The size of one part of a template, with every reference replaced by the longest text that it may stand for. */
export interface MeasuredSize {
  /** For example `inline policies of role slipway-research-us-west-2-nlp-execution`. */
  what: string;
  size: number;
  limit: number;
  unit: string;
  /** The option that determines the size. */
  option: string;
}

/**
 * Limits of CloudFormation and of the services, 2026-11-26:
 * https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/cloudformation-limits.html,
 * https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html (white space is not counted),
 * https://docs.aws.amazon.com/kms/latest/developerguide/resource-limits.html,
 * https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucket-policies.html,
 * https://docs.aws.amazon.com/vpc/latest/privatelink/vpc-limits-endpoints.html,
 * https://docs.aws.amazon.com/general/latest/gr/ssm.html, https://docs.aws.amazon.com/general/latest/gr/sns.html,
 * https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html,
 * https://docs.aws.amazon.com/aws-cost-management/latest/APIReference/API_budgets_NotificationWithSubscribers.html.
 */
const LIMITS = {
  template: 1_000_000,
  resources: 500,
  outputs: 200,
  parameters: 200,
  inlinePolicies: 10_240,
  managedPolicy: 6_144,
  managedPolicies: 10,
  trustPolicy: 2_048,
  keyPolicy: 32_768,
  bucketPolicy: 20_480,
  endpointPolicy: 20_480,
  topicPolicy: 30_720,
  standardParameter: 4_096,
  largeParameter: 8_192,
  variables: 4_096,
  // An event of a custom resource is the payload of an asynchronous call.
  customResource: 262_144,
  budgetEmails: 10,
  filterPolicies: 200,
  tags: 50,
} as const;

const NAMES: Readonly<Record<string, readonly [property: string, limit: number]>> = {
  'AWS::IAM::Role': ['RoleName', 64],
  'AWS::Lambda::Function': ['FunctionName', 64],
  'AWS::S3::Bucket': ['BucketName', 63],
  'AWS::ECR::Repository': ['RepositoryName', 256],
  'AWS::DynamoDB::Table': ['TableName', 255],
  'AWS::CloudWatch::Dashboard': ['DashboardName', 255],
  'AWS::SSM::Parameter': ['Name', 1_011],
};

type Properties = Record<string, unknown>;
const textOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value ?? {}));
const bytesOf = (value: unknown): number => Buffer.byteLength(textOf(value));
const listOf = (value: unknown): unknown[] => (value === undefined ? [] : ([] as unknown[]).concat(value));

/** Stands for an account that is not known yet. */
export const ANY_ACCOUNT = '111122223333';

export function measureTemplate(
  template: SentTemplate,
  place: Omit<TemplatePlace, 'partition' | 'urlSuffix'>,
): MeasuredSize[] {
  const { partition = 'aws', domain: urlSuffix = 'amazonaws.com' } = REGIONS[place.region] ?? {};
  const resources = template.Resources ?? {};
  const values = new TemplateValues(resources, { partition, urlSuffix, ...place });
  const resolved = Object.entries(resources).map(([id, { Type, Properties = {} }]) => ({
    id,
    type: Type,
    properties: values.resolve(Properties) as Properties,
  }));
  const ofTags = resolved.reduce((sum, { properties }) => sum + bytesOf(properties.Tags ?? ''), 0);
  const count = (what: string, things: object | undefined, limit: number) =>
    measured('the template', Object.keys(things ?? {}).length, [limit, what], 'teams');
  return [
    measured(
      'the template',
      bytesOf(template),
      [LIMITS.template, 'bytes'],
      ofTags > bytesOf(template) / 2 ? 'tags' : 'teams',
    ),
    count('resources', resources, LIMITS.resources),
    count('outputs', template.Outputs, LIMITS.outputs),
    count('parameters', template.Parameters, LIMITS.parameters),
    ...resolved.flatMap((resource) => [...sizesOf(resource), ...namesOf(resource)]),
    ...policiesOfRoles(resolved, values),
    ...filterPolicies(resolved),
  ];
}

/** What is larger than AWS accepts, as one issue for each option, with the largest of its parts. */
export function sizeIssues(sizes: readonly MeasuredSize[]): Issue[] {
  const tooLarge = sizes.filter(({ size, limit }) => size > limit);
  return tooLarge.map(({ what, size, limit, unit, option }) =>
    issue('environment/size', 'error', option, {
      must: `must make ${what} of at most ${limit.toLocaleString('en')} ${unit}`,
      got: size.toLocaleString('en'),
      fix: FIXES[option.replace(/\.[a-z0-9]+\./, '.*.')] ?? 'use fewer or shorter ones',
    }),
  );
}

const FIXES: Readonly<Record<string, string>> = {
  teams: 'move some of the teams to a second environment',
  'storage.external': 'name fewer locations, or a prefix that several of them share',
  'quotas.require': 'name fewer instance types',
};

const measured = (
  what: string,
  size: number,
  [limit, unit]: readonly [limit: number, unit: string],
  option: string,
): MeasuredSize => ({ what, size, limit, unit, option });

interface Resolved {
  id: string;
  type: string;
  properties: Properties;
}

function sizesOf({ id, type, properties: p }: Resolved): MeasuredSize[] {
  const policy = (name: string, document: unknown, limit: number, option: string) => [
    measured(`${name} of ${id}`, bytesOf(document), [limit, 'bytes'], option),
  ];
  switch (type) {
    case 'AWS::IAM::Role':
      return policy(
        'the trust policy',
        p.AssumeRolePolicyDocument,
        LIMITS.trustPolicy,
        principalsOf(String(p.RoleName)),
      );
    case 'AWS::IAM::ManagedPolicy':
      return policy('the managed policy', p.PolicyDocument, LIMITS.managedPolicy, optionOfPolicy(id));
    case 'AWS::KMS::Key':
      return policy('the key policy', p.KeyPolicy, LIMITS.keyPolicy, 'teams');
    case 'AWS::S3::BucketPolicy':
      return policy('the bucket policy', p.PolicyDocument, LIMITS.bucketPolicy, 'storage');
    case 'AWS::EC2::VPCEndpoint':
      return policy('the endpoint policy', p.PolicyDocument, LIMITS.endpointPolicy, 'storage.external');
    case 'AWS::SNS::TopicPolicy':
      return policy('the topic policy', p.PolicyDocument, LIMITS.topicPolicy, 'teams');
    case 'AWS::SSM::Parameter':
      return [parameterSize(p)];
    case 'AWS::Lambda::Function': {
      const variables = (p.Environment as { Variables?: object } | undefined)?.Variables;
      return policy('environment variables', variables, LIMITS.variables, 'teams');
    }
    case 'AWS::Budgets::Budget':
      return budgetSizes(id, p);
    default:
      return type.startsWith('Custom::')
        ? policy('properties', p, LIMITS.customResource, optionOfCustomResource(type))
        : [];
  }
}

function parameterSize({ Name, Tier, Value }: Properties): MeasuredSize {
  const limit = Tier === undefined || Tier === 'Standard' ? LIMITS.standardParameter : LIMITS.largeParameter;
  const option = limit === LIMITS.largeParameter ? largestOption(textOf(Value)) : 'teams';
  return measured(`parameter ${String(Name)}`, bytesOf(Value), [limit, 'bytes'], option);
}

/** Options that may take much of a descriptor, by its keys. */
const DESCRIBED: Readonly<Record<string, string>> = {
  external: 'storage.external',
  fileSystems: 'storage.fileSystems',
  ...{ guardrails: 'guardrails', prices: 'prices', tags: 'tags' },
  ...{ mlflow: 'teams', writableData: 'teams', foreignTrainingPlans: 'teams' },
};

function largestOption(descriptor: string): string {
  const parts = Object.entries(parseJson(descriptor) ?? {}).filter(([key]) => Object.hasOwn(DESCRIBED, key));
  const [largest = ''] = parts.sort(([, a], [, b]) => bytesOf(b) - bytesOf(a))[0] ?? [];
  return DESCRIBED[largest] ?? 'storage.external';
}

function budgetSizes(id: string, { NotificationsWithSubscribers }: Properties): MeasuredSize[] {
  const notifications = listOf(NotificationsWithSubscribers) as { Subscribers?: { SubscriptionType?: string }[] }[];
  const emails = notifications.map(
    ({ Subscribers = [] }) => Subscribers.filter(({ SubscriptionType }) => SubscriptionType === 'EMAIL').length,
  );
  return emails.map((size) =>
    measured(`a notification of ${id}`, size, [LIMITS.budgetEmails, 'addresses'], 'notifications.emails'),
  );
}

function namesOf({ type, properties }: Resolved): MeasuredSize[] {
  const [property = '', limit = 0] = NAMES[type] ?? [];
  const name = properties[property];
  const tags = listOf(properties.Tags).length;
  return [
    ...(typeof name === 'string' ? [measured(`name ${name}`, name.length, [limit, 'characters'], 'name')] : []),
    ...(tags > 0 ? [measured(`a resource ${type}`, tags, [LIMITS.tags, 'tags'], 'tags')] : []),
  ];
}

/** All inline policies of a role count together, and so do its managed policies. */
function policiesOfRoles(resolved: readonly Resolved[], values: TemplateValues): MeasuredSize[] {
  const attached = (role: string, type: string) =>
    resolved.filter((one) => one.type === type && listOf(one.properties.Roles).includes(role));
  return resolved
    .filter(({ type }) => type === 'AWS::IAM::Role')
    .flatMap(({ id, properties }) => {
      const name = values.nameOf(id);
      const own = listOf(properties.Policies) as { PolicyDocument?: unknown }[];
      const inline = [...own, ...attached(name, 'AWS::IAM::Policy').map((one) => one.properties)];
      const size = inline.reduce((sum, { PolicyDocument }) => sum + bytesOf(PolicyDocument), 0);
      const managed = listOf(properties.ManagedPolicyArns).length + attached(name, 'AWS::IAM::ManagedPolicy').length;
      const option = optionOfPolicy(id);
      return [
        measured(`inline policies of role ${name}`, size, [LIMITS.inlinePolicies, 'bytes'], option),
        measured(`role ${name}`, managed, [LIMITS.managedPolicies, 'managed policies'], option),
      ];
    });
}

function filterPolicies(resolved: readonly Resolved[]): MeasuredSize[] {
  const filtered = resolved.filter(
    ({ type, properties }) => type === 'AWS::SNS::Subscription' && properties.FilterPolicy,
  );
  return [measured('the topic', filtered.length, [LIMITS.filterPolicies, 'filter policies'], 'notifications.emails')];
}

const optionOfPolicy = (id: string): string => (/^Roles|^NetworkVpc/.test(id) ? 'storage.external' : 'teams');

/** The option with the principals that a role trusts. */
function principalsOf(roleName: string): string {
  const team = /-([a-z0-9]+)-researcher/.exec(roleName)?.[1];
  if (team) return `teams.${team}.principals`;
  const persona = { 'platform-admin': 'platformAdmins', auditor: 'auditors', ci: 'ci' };
  const [, option = 'platformAdmins'] = Object.entries(persona).find(([name]) => roleName.includes(`-${name}`)) ?? [];
  return `access.${option}`;
}

function optionOfCustomResource(type: string): string {
  if (type.endsWith('QuotaPreflight')) return 'quotas.require';
  return type.endsWith('ExistingNetwork') ? 'network.existing' : 'teams';
}
