import {
  type ContextEntry,
  GetPolicyCommand,
  GetPolicyVersionCommand,
  GetRoleCommand,
  GetRolePolicyCommand,
  type IAMClient,
  paginateListAttachedRolePolicies,
  paginateListRolePolicies,
  SimulatePrincipalPolicyCommand,
} from '@aws-sdk/client-iam';
import { itemsOf } from '../../../../shared/aws/pages';
import {
  actionsOf,
  contextOf,
  includesResource,
  isAllowed,
  isExact,
  listOf,
  type RoleStatement,
  resourcesOf,
} from '../../../../shared/aws/policy-document';
import { firstFive, holdsIf, noneOf, type Probe, probe, type ReadWorld, unknown } from '../probe';

/** Values that no environment uses: a request with one of them must be denied. */
const FOREIGN: Readonly<Record<string, string[]>> = {
  'sagemaker:VpcSubnets': ['subnet-00000000000000000'],
  'sagemaker:VpcSecurityGroupIds': ['sg-00000000000000000'],
  'sagemaker:InstanceTypes': ['ml.none.none'],
  'sagemaker:OutputKmsKey': ['arn:aws:kms:us-east-1:111122223333:key/00000000-0000-0000-0000-000000000000'],
};

const rolesOf = async (world: ReadWorld): Promise<RolePolicies[]> => {
  const roles: RolePolicies[] = [];
  for (const name of await world.resourcesOf('AWS::IAM::Role')) roles.push(await rolePolicies(world.iam, name));
  return roles;
};

interface Question {
  readonly actions: string[];
  readonly resources: string[];
  readonly context: ContextEntry[];
}

/** Actions that IAM does not allow, each as `action (decision)`. */
async function denied(
  world: ReadWorld,
  role: RolePolicies,
  { actions, resources, context }: Question,
): Promise<string[]> {
  const answer = await world.iam.send(
    new SimulatePrincipalPolicyCommand({
      PolicySourceArn: role.arn,
      ActionNames: actions,
      ResourceArns: resources,
      ContextEntries: context,
    }),
  );
  return (answer.EvaluationResults ?? [])
    .filter((found) => !isAllowed(found))
    .map((found) => {
      const byOrganization = found.OrganizationsDecisionDetail?.AllowedByOrganizations === false;
      const byBoundary = found.PermissionsBoundaryDecisionDetail?.AllowedByPermissionsBoundary === false;
      const who = byOrganization ? ' by an organization policy' : byBoundary ? ' by the permissions boundary' : '';
      return `${role.name}: ${found.EvalActionName} (${found.EvalDecision}${who})`;
    });
}

export const PERMISSION_PROBES: readonly Probe<ReadWorld>[] = [
  probe('roles-allow', 'every action of every role is allowed', async (world) => {
    const roles = await rolesOf(world);
    if (roles.length === 0) return unknown(`environment ${world.environment} is not deployed in ${world.region}`);
    const problems: string[] = [];
    let actions = 0;
    for (const role of roles) {
      for (const statement of role.statements.filter(isExact)) {
        const question = {
          actions: actionsOf(statement),
          resources: resourcesOf(statement),
          context: contextIn(role, statement),
        };
        actions += question.actions.length;
        problems.push(...(await denied(world, role, question)));
      }
    }
    const seen = `${actions} actions of ${roles.length} roles simulated; denied: ${firstFive(problems) || 'none'}`;
    return holdsIf(problems.length === 0, seen);
  }),
  probe('guardrail-conditions', 'a request with foreign subnets, groups, types or keys is denied', async (world) => {
    const creators = (await rolesOf(world)).flatMap((role) =>
      role.statements
        .filter((s) => s.Effect === 'Allow' && actionsOf(s).includes('sagemaker:CreateTrainingJob'))
        .map((statement) => ({ role, statement })),
    );
    if (creators.length === 0) return unknown('no role of the stack is allowed to create training jobs');
    const passed: string[] = [];
    let tried = 0;
    for (const { role, statement } of creators) {
      const keys = contextIn(role, statement).map(({ ContextKeyName }) => ContextKeyName);
      for (const key of Object.keys(FOREIGN).filter((name) => keys.includes(name))) {
        tried++;
        const question = {
          actions: ['sagemaker:CreateTrainingJob'],
          resources: resourcesOf(statement),
          context: contextIn(role, statement, { [key]: FOREIGN[key] ?? [] }),
        };
        if ((await denied(world, role, question)).length === 0) passed.push(`${role.name}: foreign ${key} was allowed`);
      }
    }
    if (tried === 0) return holdsIf(false, 'the statements have no such condition');
    return noneOf(passed, `${tried} foreign values were denied`);
  }),
  probe('quota-action-resource', 'servicequotas:GetServiceQuota is allowed on `*`', async (world) => {
    const roles = (await rolesOf(world)).filter((role) =>
      role.statements.some((s) => actionsOf(s).includes('servicequotas:GetServiceQuota')),
    );
    if (roles.length === 0) return unknown('no role of the stack reads quotas');
    const problems: string[] = [];
    for (const role of roles) {
      const question = { actions: ['servicequotas:GetServiceQuota'], resources: ['*'], context: [] };
      problems.push(...(await denied(world, role, question)));
    }
    return noneOf(problems, `allowed for ${roles.length} roles`);
  }),
];

/**
 * Context of a call that a statement allows and none of the role's denials of the same actions and resources meets. Such a denial names
 * with a negated operator what the call must have.
 * @param other as for contextOf
 */
export function contextIn(
  { statements }: Pick<RolePolicies, 'statements'>,
  statement: RoleStatement,
  other: Readonly<Record<string, string[]>> = {},
): ContextEntry[] {
  const denials = statements.filter(
    (one) =>
      one.Effect === 'Deny' &&
      actionsOf(one).some((action) => actionsOf(statement).includes(action)) &&
      resourcesOf(statement).some((resource) => includesResource(one, resource)),
  );
  const wanted = denials.map(({ Condition = {}, ...one }) => ({
    ...one,
    Condition: Object.fromEntries(Object.entries(Condition).filter(([operator]) => /Not(Equals|Like)/.test(operator))),
  }));
  const entries = [...wanted, statement].flatMap((one) => contextOf(one, other));
  return [...new Map(entries.map((entry) => [entry.ContextKeyName, entry])).values()];
}

interface RolePolicies {
  name: string;
  arn: string;
  statements: RoleStatement[];
}

/** Reads the inline policies of a role and the managed policies of its account; attached AWS managed policies are not checked. */
export async function rolePolicies(client: IAMClient, RoleName: string): Promise<RolePolicies> {
  const { Role } = await client.send(new GetRoleCommand({ RoleName }));
  const statements: RoleStatement[] = [];
  const inline = paginateListRolePolicies({ client }, { RoleName });
  for (const PolicyName of await itemsOf(inline, (page) => page.PolicyNames)) {
    const { PolicyDocument } = await client.send(new GetRolePolicyCommand({ RoleName, PolicyName }));
    statements.push(...statementsIn(PolicyDocument));
  }
  const attached = paginateListAttachedRolePolicies({ client }, { RoleName });
  for (const { PolicyArn = '' } of await itemsOf(attached, (page) => page.AttachedPolicies)) {
    if (PolicyArn.includes(':iam::aws:')) continue;
    const { Policy } = await client.send(new GetPolicyCommand({ PolicyArn }));
    const VersionId = Policy?.DefaultVersionId;
    const { PolicyVersion } = await client.send(new GetPolicyVersionCommand({ PolicyArn, VersionId }));
    statements.push(...statementsIn(PolicyVersion?.Document));
  }
  return { name: RoleName, arn: Role?.Arn ?? '', statements };
}

function statementsIn(document = '{}'): RoleStatement[] {
  const { Statement } = JSON.parse(decodeURIComponent(document)) as { Statement?: RoleStatement | RoleStatement[] };
  return listOf(Statement);
}
