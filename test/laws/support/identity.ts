import { loadAwsServiceSpecSync } from '@aws-cdk/aws-service-spec';
import type { TemplateResource } from '../../constructs/support/app';

/** Types whose replacement loses data, breaks what people hold a reference to, or moves the network under jobs. */
export const STATEFUL_TYPES = [
  'AWS::S3::Bucket',
  'AWS::KMS::Key',
  'AWS::DynamoDB::Table',
  'AWS::ECR::Repository',
  'AWS::FSx::FileSystem',
  'AWS::SNS::Topic',
  'AWS::SQS::Queue',
  'AWS::EC2::VPC',
  'AWS::EC2::Subnet',
  'AWS::EC2::SecurityGroup',
  'AWS::EC2::NatGateway',
  'AWS::EC2::EIP',
  'AWS::SSM::Parameter',
] as const;

/** What CloudFormation compares when it decides whether to replace a resource. */
export interface Identity {
  type: string;
  /** Properties that cannot change without a replacement, as far as the template sets them. */
  fixed: Record<string, unknown>;
}

const createOnlyOf = new Map<string, string[]>();

/** Properties whose change makes CloudFormation replace a resource, from AWS's resource specification. */
export function createOnlyProperties(type: string): string[] {
  const known = createOnlyOf.get(type);
  if (known) return known;
  const found = [...loadAwsServiceSpecSync().lookup('resource', 'cloudFormationType', 'equals', type)][0];
  const names = Object.entries(found?.properties ?? {}).flatMap(([name, property]) =>
    property.causesReplacement === 'yes' ? [name] : [],
  );
  createOnlyOf.set(type, names);
  return names;
}

/** The identities of the stateful resources of a template, by logical id. */
export function identitiesOf(resources: Record<string, TemplateResource>): Record<string, Identity> {
  const stateful = Object.entries(resources).filter(([, { Type }]) =>
    (STATEFUL_TYPES as readonly string[]).includes(Type),
  );
  return Object.fromEntries(
    stateful.map(([id, { Type, Properties = {} }]) => {
      const fixed = createOnlyProperties(Type).flatMap((name) =>
        name in Properties ? [[name, Properties[name]]] : [],
      );
      return [id, { type: Type, fixed: Object.fromEntries(fixed) }];
    }),
  );
}
