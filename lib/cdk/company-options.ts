import { isDeepStrictEqual } from 'node:util';
import { AspectPriority, Aspects, type Stack, Tags } from 'aws-cdk-lib';
import { DEFAULT_LOGGING, type EnvironmentSpec } from '../core/config/environment-file';
import { ApplyRoleOptions } from './access/role-options';
import { ApplyLogOptions } from './functions/log-options';

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
