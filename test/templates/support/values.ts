// What a template says once CloudFormation has filled its references in: every Ref and GetAtt gets a value of the right form.
import type { TemplateResource } from '../../constructs/support/app';

export const PINNED = { partition: 'aws', account: '111122223333', region: 'us-west-2' };

export type Resources = Record<string, TemplateResource>;

const { partition, account, region } = PINNED;
const arn = (service: string, rest: string) => `arn:${partition}:${service}:${region}:${account}:${rest}`;

/** ARN of a resource by its type; `{name}` is its explicit name or its logical id. */
const ARNS: Readonly<Record<string, (name: string) => string>> = {
  'AWS::IAM::Role': (name) => `arn:${partition}:iam::${account}:role/${name}`,
  'AWS::S3::Bucket': (name) => `arn:${partition}:s3:::${name.toLowerCase()}`,
  'AWS::KMS::Key': (name) => arn('kms', `key/${name}`),
  'AWS::SNS::Topic': (name) => arn('sns', name),
  'AWS::SQS::Queue': (name) => arn('sqs', name),
  'AWS::Lambda::Function': (name) => arn('lambda', `function:${name}`),
  'AWS::DynamoDB::Table': (name) => arn('dynamodb', `table/${name}`),
  'AWS::ECR::Repository': (name) => arn('ecr', `repository/${name}`),
  'AWS::Logs::LogGroup': (name) => `${arn('logs', `log-group:${name}`)}:*`,
  'AWS::CodeBuild::Project': (name) => arn('codebuild', `project/${name}`),
  'AWS::StepFunctions::StateMachine': (name) => arn('states', `stateMachine:${name}`),
  'AWS::Events::Rule': (name) => arn('events', `rule/${name}`),
  'AWS::CloudWatch::Alarm': (name) => arn('cloudwatch', `alarm:${name}`),
  'AWS::SSM::Parameter': (name) => arn('ssm', `parameter${name}`),
};

const NAME_PROPERTIES = [
  'RoleName',
  'BucketName',
  'FunctionName',
  'TableName',
  'RepositoryName',
  'LogGroupName',
  'TopicName',
  'QueueName',
  'Name',
];
/** Types whose Ref is their ARN. */
const REF_IS_ARN = new Set(['AWS::SNS::Topic', 'AWS::StepFunctions::StateMachine']);

/** ARN of a resource of the template, or undefined when its type is in no table. */
export function arnOf(resources: Resources, id: string): string | undefined {
  const resource = resources[id];
  const make = resource && ARNS[resource.Type];
  return make?.(nameOf(resources, id));
}

export function nameOf(resources: Resources, id: string): string {
  const properties = resources[id]?.Properties ?? {};
  const own = NAME_PROPERTIES.map((key) => properties[key]).find((value) => value !== undefined);
  return own === undefined ? id : String(resolveValue(resources, own));
}

/** The value with all its references filled in. */
export function resolveValue(resources: Resources, value: unknown): unknown {
  if (Array.isArray(value)) return value.map((item) => resolveValue(resources, item));
  if (typeof value !== 'object' || value === null) return value;
  const node = value as Record<string, unknown>;
  if (typeof node.Ref === 'string') return reference(resources, node.Ref);
  if (node['Fn::GetAtt']) return attribute(resources, node['Fn::GetAtt'] as [string, string]);
  if (node['Fn::Join']) {
    const [delimiter, items] = resolveValue(resources, node['Fn::Join']) as [string, unknown[]];
    return items.join(delimiter);
  }
  if (node['Fn::Sub']) return substitute(resources, node['Fn::Sub']);
  if (node['Fn::Select']) {
    const [index, items] = resolveValue(resources, node['Fn::Select']) as [number, unknown[]];
    return items[Number(index)] ?? '';
  }
  if (node['Fn::Split']) {
    const [delimiter, text] = resolveValue(resources, node['Fn::Split']) as [string, string];
    return String(text).split(delimiter);
  }
  return Object.fromEntries(Object.entries(node).map(([key, item]) => [key, resolveValue(resources, item)]));
}

function reference(resources: Resources, id: string): string {
  const pseudo: Record<string, string> = {
    'AWS::Partition': partition,
    'AWS::AccountId': account,
    'AWS::Region': region,
    'AWS::URLSuffix': 'amazonaws.com',
    'AWS::StackId': arn('cloudformation', 'stack/Stack/0'),
    'AWS::StackName': 'Stack',
  };
  const type = resources[id]?.Type ?? '';
  if (pseudo[id] !== undefined) return pseudo[id];
  if (REF_IS_ARN.has(type)) return arnOf(resources, id) ?? id;
  if (type === 'AWS::Lambda::Alias') return aliasArn(resources, id);
  if (type === 'AWS::SQS::Queue') return `https://sqs.${region}.amazonaws.com/${account}/${nameOf(resources, id)}`;
  if (type === 'AWS::Lambda::Version') return `${arnOf(resources, functionOf(resources, id))}:1`;
  // The key of an earlier stack, which a parameter of the template reads from SSM.
  if (/^SsmParameterValue.*key/.test(id)) return arn('kms', 'key/adopted');
  return type === 'AWS::S3::Bucket' ? nameOf(resources, id).toLowerCase() : nameOf(resources, id);
}

function attribute(resources: Resources, [id, name]: [string, string]): string {
  if (name === 'Arn' || name.endsWith('Arn')) return arnOf(resources, id) ?? `${id}.${name}`;
  if (name === 'Version') return '1';
  return `${id}.${name}`;
}

function aliasArn(resources: Resources, id: string): string {
  const name = String(resources[id]?.Properties.Name);
  return `${arnOf(resources, functionOf(resources, id))}:${name}`;
}

function functionOf(resources: Resources, id: string): string {
  const name = resources[id]?.Properties.FunctionName as { Ref?: string } | undefined;
  return name?.Ref ?? '';
}

function substitute(resources: Resources, argument: unknown): string {
  const [text, names] = (Array.isArray(argument) ? argument : [argument, {}]) as [string, Record<string, unknown>];
  return text.replace(/\$\{([^}!]+)\}/g, (_whole, name: string) => {
    if (name in names) return String(resolveValue(resources, names[name]));
    const [id = '', ...rest] = name.split('.');
    return rest.length > 0 ? attribute(resources, [id, rest.join('.')]) : reference(resources, name);
  });
}
