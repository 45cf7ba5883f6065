import { GetRoleCommand, GetRolePolicyCommand, type IAMClient, paginateListRolePolicies } from '@aws-sdk/client-iam';
import { listOf } from '../aws/policy-document';
import type { RoleStatement } from '../aws/roles/statement';

/** The statements of a role, inline and managed. */
export interface RolePolicies {
  name: string;
  arn: string;
  statements: RoleStatement[];
}

/** The inline policies of a role; policies of AWS that are attached to it are not ours to check. */
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
