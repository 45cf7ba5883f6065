import {
  GetPolicyCommand,
  GetPolicyVersionCommand,
  GetRoleCommand,
  GetRolePolicyCommand,
  type IAMClient,
  paginateListAttachedRolePolicies,
  paginateListRolePolicies,
} from '@aws-sdk/client-iam';
import { listOf } from '../../../shared/aws/policy-document';
import type { RoleStatement } from '../../../shared/aws/roles/statement';

/** The statements of a role's policies. */
export interface RolePolicies {
  name: string;
  arn: string;
  statements: RoleStatement[];
}

/** Reads the inline policies of a role and the managed policies of its account; attached AWS managed policies are not checked. */
export async function rolePolicies(client: IAMClient, RoleName: string): Promise<RolePolicies> {
  const { Role } = await client.send(new GetRoleCommand({ RoleName }));
  const statements: RoleStatement[] = [];
  for await (const page of paginateListRolePolicies({ client }, { RoleName })) {
    for (const PolicyName of page.PolicyNames ?? []) {
      const { PolicyDocument } = await client.send(new GetRolePolicyCommand({ RoleName, PolicyName }));
      statements.push(...statementsIn(PolicyDocument));
    }
  }
  for await (const page of paginateListAttachedRolePolicies({ client }, { RoleName })) {
    for (const { PolicyArn = '' } of page.AttachedPolicies ?? []) {
      if (PolicyArn.includes(':iam::aws:')) continue;
      const { Policy } = await client.send(new GetPolicyCommand({ PolicyArn }));
      const VersionId = Policy?.DefaultVersionId;
      const { PolicyVersion } = await client.send(new GetPolicyVersionCommand({ PolicyArn, VersionId }));
      statements.push(...statementsIn(PolicyVersion?.Document));
    }
  }
  return { name: RoleName, arn: Role?.Arn ?? '', statements };
}

function statementsIn(document = '{}'): RoleStatement[] {
  const { Statement } = JSON.parse(decodeURIComponent(document)) as { Statement?: RoleStatement | RoleStatement[] };
  return listOf(Statement);
}
