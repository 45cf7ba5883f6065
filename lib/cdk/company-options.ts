import { isDeepStrictEqual } from 'node:util';
import { AspectPriority, Aspects, CfnResource, type IAspect, type Stack, Tags } from 'aws-cdk-lib';
import type { IConstruct } from 'constructs';
import { DEFAULT_LOGGING, type EnvironmentSpec } from '../core/config/environment-file';
import { ApplyRoleOptions } from './access/role-options';

/** Applies company-wide options to every role, log group and resource of a stack, whatever created it. */
export function applyCompanyOptions(stack: Stack, { iam, logging, tags }: EnvironmentSpec): void {
  const priority = { priority: AspectPriority.MUTATING };
  for (const [key, value] of Object.entries(tags)) Tags.of(stack).add(key, value);
  if (!isDeepStrictEqual(logging, DEFAULT_LOGGING)) Aspects.of(stack).add(new ApplyLogOptions(logging), priority);
  if (!(iam.permissionsBoundary ?? iam.rolePath ?? iam.rolePrefix)) return;
  const roles = new ApplyRoleOptions(iam);
  // At once: the sizes of policies are measured, before the aspects visit the roles, with the names of roles.
  for (const node of stack.node.findAll()) roles.visit(node);
  Aspects.of(stack).add(roles, priority);
}

/** Encryption and retention of the log groups in a scope. */
interface LogOptions {
  /** Whether log groups keep the key that their construct has set. */
  readonly kms: boolean;
  /** Retention in days, one of the values that CloudWatch Logs accepts. */
  readonly retentionDays: number;
}

/** Encryption and retention of every log group in a scope. */
class ApplyLogOptions implements IAspect {
  constructor(private readonly options: LogOptions) {}

  visit(node: IConstruct): void {
    if (!CfnResource.isCfnResource(node) || node.cfnResourceType !== 'AWS::Logs::LogGroup') return;
    node.addPropertyOverride('RetentionInDays', this.options.retentionDays);
    if (!this.options.kms) node.addPropertyDeletionOverride('KmsKeyId');
  }
}
