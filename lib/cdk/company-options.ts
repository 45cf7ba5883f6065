import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { AspectPriority, Aspects, CfnResource, type IAspect, Stack, Tags, Token } from 'aws-cdk-lib';
import type { IConstruct } from 'constructs';
import { managedPolicyArn } from '../core/config/environment/company';
import { DEFAULT_LOGGING, type EnvironmentSpec } from '../core/config/environment-file';
import { acknowledge } from './acknowledged-checks';

/** https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html */
const MAX_NAME = 64;
const TAG = 8;

/**
 * Sets boundary, path and names of every role in a scope, including those of the CDK's own custom resources. Every role then has a name,
 * which ends with a hash of its path: a change of the path replaces a role, and the new one is created before the old one is deleted.
 */
class ApplyRoleOptions implements IAspect {
  private readonly applied = new Set<IConstruct>();

  constructor(private readonly options: EnvironmentSpec['iam']) {}

  visit(node: IConstruct): void {
    if (!CfnResource.isCfnResource(node) || this.applied.has(node)) return;
    this.applied.add(node);
    if (node.cfnResourceType === 'AWS::IAM::Role') this.apply(node);
    if (node.cfnResourceType === 'AWS::CodeBuild::Project' && this.options.rolePath !== undefined)
      acknowledge(node, {
        id: 'CloudFormation-Validate::E3050',
        reason: 'The project names its role by GetAtt of the ARN, which the check takes for a Ref.',
      });
  }

  private apply(node: CfnResource): void {
    const { permissionsBoundary, rolePath, rolePrefix } = this.options;
    if (permissionsBoundary !== undefined)
      node.addPropertyOverride('PermissionsBoundary', managedPolicyArn(permissionsBoundary, Stack.of(node)));
    if (rolePath !== undefined) node.addPropertyOverride('Path', rolePath);
    const name = this.nameOf(node);
    if (name !== undefined && (rolePrefix !== undefined || rolePath !== undefined))
      node.addPropertyOverride('RoleName', name);
  }

  /** Undefined: CloudFormation generates the name, as for roles without a name when no prefix is set. */
  private nameOf(role: CfnResource): string | undefined {
    const given: unknown = Stack.of(role).resolve((role as CfnResource & { roleName?: string }).roleName);
    const own = typeof given === 'string' && !Token.isUnresolved(given) ? given : undefined;
    const { rolePrefix = '', rolePath = '/' } = this.options;
    if (own === undefined && rolePrefix === '') return undefined;
    const tag = createHash('sha256').update(`${role.node.path} ${rolePath}`).digest('hex').slice(0, TAG);
    const readable = own ?? `${Stack.of(role).stackName}-${role.node.scope?.node.id ?? ''}`.replace(/[^\w+=,.@-]/g, '');
    return `${rolePrefix}${readable}`.slice(0, MAX_NAME - TAG - 1).concat('-', tag);
  }
}

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

/** Encryption and retention of every log group in a scope. */
class ApplyLogOptions implements IAspect {
  constructor(private readonly options: EnvironmentSpec['logging']) {}

  visit(node: IConstruct): void {
    if (!CfnResource.isCfnResource(node) || node.cfnResourceType !== 'AWS::Logs::LogGroup') return;
    node.addPropertyOverride('RetentionInDays', this.options.retentionDays);
    if (!this.options.kms) node.addPropertyDeletionOverride('KmsKeyId');
  }
}
