import { type ContextEntry, SimulatePrincipalPolicyCommand } from '@aws-sdk/client-iam';
import { actionsOf, contextOf, isAllowed, isExact, resourcesOf } from '../../../../shared/aws/roles/statement';
import { firstFive, holdsIf, type Probe, unknown } from '../probe';
import type { ReadWorld } from '../read-world';
import { type RolePolicies, rolePolicies } from '../role-policies';

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

const rolesAllow: Probe<ReadWorld> = {
  assumption: 'roles-allow',
  async run(world) {
    const roles = await rolesOf(world);
    const expected = 'every action of every role is allowed';
    if (roles.length === 0)
      return unknown(expected, `environment ${world.environment} is not deployed in ${world.region}`);
    const problems: string[] = [];
    let actions = 0;
    for (const role of roles) {
      for (const statement of role.statements.filter(isExact)) {
        const question = {
          actions: actionsOf(statement),
          resources: resourcesOf(statement),
          context: contextOf(statement),
        };
        actions += question.actions.length;
        problems.push(...(await denied(world, role, question)));
      }
    }
    const seen = `${actions} actions of ${roles.length} roles simulated; denied: ${firstFive(problems) || 'none'}`;
    return holdsIf(problems.length === 0, expected, seen);
  },
};

const guardrailConditions: Probe<ReadWorld> = {
  assumption: 'guardrail-conditions',
  async run(world) {
    const expected = 'a request with foreign subnets, groups, types or keys is denied';
    const creators = (await rolesOf(world)).flatMap((role) =>
      role.statements
        .filter((s) => s.Effect === 'Allow' && actionsOf(s).includes('sagemaker:CreateTrainingJob'))
        .map((statement) => ({ role, statement })),
    );
    if (creators.length === 0) return unknown(expected, 'no role of the stack is allowed to create training jobs');
    const passed: string[] = [];
    let tried = 0;
    for (const { role, statement } of creators) {
      const keys = Object.values(statement.Condition ?? {}).flatMap((condition) => Object.keys(condition));
      for (const key of Object.keys(FOREIGN).filter((name) => keys.includes(name))) {
        tried++;
        const question = {
          actions: ['sagemaker:CreateTrainingJob'],
          resources: resourcesOf(statement),
          context: contextOf(statement, { [key]: FOREIGN[key] ?? [] }),
        };
        if ((await denied(world, role, question)).length === 0) passed.push(`${role.name}: foreign ${key} was allowed`);
      }
    }
    if (tried === 0) return holdsIf(false, expected, 'the statements have no such condition');
    return holdsIf(passed.length === 0, expected, firstFive(passed) || `${tried} foreign values were denied`);
  },
};

const quotaAction: Probe<ReadWorld> = {
  assumption: 'quota-action-resource',
  async run(world) {
    const expected = 'servicequotas:GetServiceQuota is allowed on `*`';
    const roles = (await rolesOf(world)).filter((role) =>
      role.statements.some((s) => actionsOf(s).includes('servicequotas:GetServiceQuota')),
    );
    if (roles.length === 0) return unknown(expected, 'no role of the stack reads quotas');
    const problems: string[] = [];
    for (const role of roles) {
      const question = { actions: ['servicequotas:GetServiceQuota'], resources: ['*'], context: [] };
      problems.push(...(await denied(world, role, question)));
    }
    return holdsIf(problems.length === 0, expected, firstFive(problems) || `allowed for ${roles.length} roles`);
  },
};

/** Read-only probes of roles. */
export const PERMISSION_PROBES: readonly Probe<ReadWorld>[] = [rolesAllow, guardrailConditions, quotaAction];
