import type { TemplateResource } from '../../cdk/support/app';
import { FILE, readCreateOnly } from './create-only';

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

let createOnly: Record<string, string[]> | undefined;

/**
 * Properties whose change makes CloudFormation replace a resource, from AWS's resource specification; none for custom resources.
 * @throws for a type of AWS that the extract of the specification does not have
 */
export function createOnlyProperties(type: string): string[] {
  if (!type.startsWith('AWS::')) return [];
  createOnly ??= readCreateOnly().types;
  const found = createOnly[type];
  if (!found) throw new Error(`${type}: must be in ${FILE}; add its service to create-only.ts, run its script`);
  return found;
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
