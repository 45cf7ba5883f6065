/** A resource of a CloudFormation template. */
export interface TemplateResource {
  Type: string;
  Properties?: Record<string, unknown>;
}

/** Resources of a template, by logical id. */
export type TemplateResources = Readonly<Record<string, TemplateResource>>;

/** Partition, account and Region of a deployment. */
export interface TemplatePlace {
  partition: string;
  account: string;
  region: string;
  /** Domain of the partition's endpoints. */
  urlSuffix: string;
  /** Name of the stack, the prefix of generated names. @default - generated names are the logical ids */
  stack?: string;
}

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
/** ARN formats of regional resources; the first `*` is the name. */
const ARNS: Readonly<Record<string, { service: string; rest: string }>> = {
  'AWS::KMS::Key': { service: 'kms', rest: 'key/*' },
  'AWS::SNS::Topic': { service: 'sns', rest: '*' },
  'AWS::SQS::Queue': { service: 'sqs', rest: '*' },
  'AWS::Lambda::Function': { service: 'lambda', rest: 'function:*' },
  'AWS::DynamoDB::Table': { service: 'dynamodb', rest: 'table/*' },
  'AWS::ECR::Repository': { service: 'ecr', rest: 'repository/*' },
  'AWS::Logs::LogGroup': { service: 'logs', rest: 'log-group:*:*' },
  'AWS::CodeBuild::Project': { service: 'codebuild', rest: 'project/*' },
  'AWS::StepFunctions::StateMachine': { service: 'states', rest: 'stateMachine:*' },
  'AWS::Events::Rule': { service: 'events', rest: 'rule/*' },
  'AWS::CloudWatch::Alarm': { service: 'cloudwatch', rest: 'alarm:*' },
  'AWS::SSM::Parameter': { service: 'ssm', rest: 'parameter*' },
};
/** Resource types whose Ref returns their ARN. */
const REF_IS_ARN = new Set(['AWS::SNS::Topic', 'AWS::StepFunctions::StateMachine']);
/** Placeholder for the suffix that CloudFormation appends to the stack name and logical id, and for ids that AWS assigns. */
const RANDOM = '0123456789AB';
const KEY_ID = '00000000-0000-0000-0000-000000000000';
const EC2_ID = '0123456789abcdef0';
const IDS: Readonly<Record<string, string>> = {
  'AWS::EC2::Subnet': `subnet-${EC2_ID}`,
  'AWS::EC2::SecurityGroup': `sg-${EC2_ID}`,
  'AWS::EC2::VPC': `vpc-${EC2_ID}`,
  'AWS::EC2::VPCEndpoint': `vpce-${EC2_ID}`,
  'AWS::EC2::RouteTable': `rtb-${EC2_ID}`,
  'AWS::FSx::FileSystem': `fs-${EC2_ID}`,
  'AWS::KMS::Key': KEY_ID,
};
/** Longest generated name, where it is shorter than that of other types. */
const LONGEST_NAMES: Readonly<Record<string, number>> = {
  'AWS::IAM::Role': 64,
  'AWS::Lambda::Function': 64,
  'AWS::S3::Bucket': 63,
  'AWS::Events::Rule': 64,
  'AWS::SQS::Queue': 80,
  'AWS::StepFunctions::StateMachine': 80,
};
const LONGEST_NAME = 128;

/** Replaces names that are only known after deployment with `*`. */
export const withUnknownNames = (value: string): string =>
  [RANDOM, KEY_ID, EC2_ID].reduce((text, unknown) => text.replaceAll(unknown, '*'), value);

/** CloudFormation shortens stack name and logical id until the name fits. */
function generatedName(stack: string, id: string, type: string): string {
  const longest = LONGEST_NAMES[type] ?? LONGEST_NAME;
  return `${`${stack}-${id}`.slice(0, longest - RANDOM.length - 1)}-${RANDOM}`;
}

/** Resolves the intrinsic functions of a template: every Ref and GetAtt gets a value of the correct form. */
export class TemplateValues {
  constructor(
    private readonly resources: TemplateResources,
    private readonly place: TemplatePlace,
  ) {}

  /** ARN of a resource of the template; undefined when the type is not in `ARNS`. */
  arnOf(id: string): string | undefined {
    const { Type, Properties } = this.resources[id] ?? {};
    if (Type === undefined) return undefined;
    const path = Type === 'AWS::IAM::Role' ? String(Properties?.Path ?? '/').slice(1) : '';
    return this.arnOfType(Type, `${path}${this.nameOf(id)}`);
  }

  /** Explicit name, or a name in the form that CloudFormation generates. */
  nameOf(id: string): string {
    const properties = this.resources[id]?.Properties ?? {};
    const own = NAME_PROPERTIES.map((key) => properties[key]).find((value) => value !== undefined);
    if (own !== undefined) return String(this.resolve(own));
    const { stack } = this.place;
    return stack === undefined ? id : generatedName(stack, id, this.resources[id]?.Type ?? '');
  }

  resolve(value: unknown): unknown {
    if (Array.isArray(value)) return value.map((item) => this.resolve(item));
    if (typeof value !== 'object' || value === null) return value;
    const node = value as Record<string, unknown>;
    if (typeof node.Ref === 'string') return this.reference(node.Ref);
    if (node['Fn::GetAtt']) return this.attribute(node['Fn::GetAtt'] as [string, string]);
    if (node['Fn::Join']) {
      const [delimiter, items] = this.resolve(node['Fn::Join']) as [string, unknown[]];
      return items.join(delimiter);
    }
    if (node['Fn::Sub']) return this.substitute(node['Fn::Sub']);
    if (node['Fn::Select']) {
      const [index, items] = this.resolve(node['Fn::Select']) as [number, unknown[]];
      return items[Number(index)] ?? '';
    }
    if (node['Fn::Split']) {
      const [delimiter, text] = this.resolve(node['Fn::Split']) as [string, string];
      return String(text).split(delimiter);
    }
    return Object.fromEntries(Object.entries(node).map(([key, item]) => [key, this.resolve(item)]));
  }

  private arn(service: string, rest: string): string {
    const { partition, region, account } = this.place;
    return `arn:${partition}:${service}:${region}:${account}:${rest}`;
  }

  private arnOfType(type: string, name: string): string | undefined {
    const { partition, account, stack } = this.place;
    if (type === 'AWS::IAM::Role') return `arn:${partition}:iam::${account}:role/${name}`;
    if (type === 'AWS::S3::Bucket') return `arn:${partition}:s3:::${name.toLowerCase()}`;
    const form = ARNS[type];
    if (!form) return undefined;
    const isUnknownKey = type === 'AWS::KMS::Key' && stack !== undefined;
    return this.arn(
      form.service,
      form.rest.replace('*', () => (isUnknownKey ? KEY_ID : name)),
    );
  }

  private reference(id: string): string {
    const { partition, account, region, urlSuffix, stack = 'Stack' } = this.place;
    const pseudo: Record<string, string> = {
      'AWS::Partition': partition,
      'AWS::AccountId': account,
      'AWS::Region': region,
      'AWS::URLSuffix': urlSuffix,
      'AWS::StackId': this.arn('cloudformation', `stack/${stack}/0`),
      'AWS::StackName': stack,
    };
    if (pseudo[id] !== undefined) return pseudo[id];
    const type = this.resources[id]?.Type ?? '';
    if (IDS[type] !== undefined && this.place.stack !== undefined) return IDS[type];
    if (REF_IS_ARN.has(type)) return this.arnOf(id) ?? id;
    if (type === 'AWS::Lambda::Alias') return this.aliasArn(id);
    if (type === 'AWS::SQS::Queue') return `https://sqs.${region}.${urlSuffix}/${account}/${this.nameOf(id)}`;
    if (type === 'AWS::Lambda::Version') return `${this.arnOf(this.functionOf(id))}:1`;
    // The key of an earlier stack, which a template parameter reads from SSM.
    if (/^SsmParameterValue.*key/.test(id)) return this.arn('kms', 'key/adopted');
    return type === 'AWS::S3::Bucket' ? this.nameOf(id).toLowerCase() : this.nameOf(id);
  }

  private attribute([id, name]: [string, string]): string {
    if (name === 'Arn' || name.endsWith('Arn')) return this.arnOf(id) ?? `${id}.${name}`;
    if (name === 'Version') return '1';
    const assigned = IDS[this.resources[id]?.Type ?? ''];
    if (assigned !== undefined && this.place.stack !== undefined && name.endsWith('Id')) return assigned;
    return `${id}.${name}`;
  }

  private aliasArn(id: string): string {
    const name = String(this.resources[id]?.Properties?.Name);
    return `${this.arnOf(this.functionOf(id))}:${name}`;
  }

  private functionOf(id: string): string {
    const name = this.resources[id]?.Properties?.FunctionName as { Ref?: string } | undefined;
    return name?.Ref ?? '';
  }

  private substitute(argument: unknown): string {
    const [text, names] = (Array.isArray(argument) ? argument : [argument, {}]) as [string, Record<string, unknown>];
    return text.replace(/\$\{([^}!]+)\}/g, (_whole, name: string) => {
      if (name in names) return String(this.resolve(names[name]));
      const [id = '', ...rest] = name.split('.');
      return rest.length > 0 ? this.attribute([id, rest.join('.')]) : this.reference(name);
    });
  }
}
