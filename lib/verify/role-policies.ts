import { GetRoleCommand, GetRolePolicyCommand, type IAMClient, paginateListRolePolicies } from '@aws-sdk/client-iam';
import { listOf } from '../aws/policy-document';
import type { RoleStatement } from '../aws/roles/statement';

/** The statements of a role's inline policies. */
export interface RolePolicies {
  name: string;
  arn: string;
  statements: RoleStatement[];
}

/** Reads the inline policies of a role; attached AWS managed policies are not checked. */
export async function rolePolicies(client: IAMClient, RoleName: string): Promise<RolePolicies> {
  const { Role } = await client.send(new GetRoleCommand({ RoleName }));
  const statements: RoleStatement[] = [];
  for await (const page of paginateListRolePolicies({ client }, { RoleName })) {
    for (const PolicyName of page.PolicyNames ?? []) {
      const { PolicyDocument } = await client.send(new GetRolePolicyCommand({ RoleName, PolicyName }));
      const { Statement } = JSON.parse(decodeURIComponent(PolicyDocument ?? '{}')) as {
        Statement?: RoleStatement | RoleStatement[];
      };
      statements.push(...listOf(Statement));
    }
  }
  return { name: RoleName, arn: Role?.Arn ?? '', statements };
}
