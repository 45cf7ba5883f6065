import {
  type ContextEntry,
  GetPolicyCommand,
  GetPolicyVersionCommand,
  type IAMClient,
  NoSuchEntityException,
  paginateSimulateCustomPolicy,
} from '@aws-sdk/client-iam';
import { type Issue, issue } from '../../../core/config/issue';
import {
  type TemplatePlace,
  type TemplateResources,
  TemplateValues,
  withUnknownNames,
} from '../../../core/contracts/template-values';
import { eachInTurn } from '../pace';
import { itemsOf } from '../pages';
import { actionsOf, contextOf, isAllowed, isExact, listOf, type RoleStatement, resourcesOf } from '../policy-document';

const PATH = 'iam.permissionsBoundary';
/** Concurrent calls of IAM's policy simulator: IAM allows few calls per second. */
const AT_ONCE = 5;
const problem = (level: Issue['level'], must: string, got: string, fix: string): Issue =>
  issue('preflight/boundary', level, PATH, { must, got, fix });

export const uncomparedBoundary = (got: string): Issue =>
  problem(
    'warning',
    'must be compared with the roles of the template',
    got,
    'run "npx cdk synth", then run preflight again',
  );

/** A statement of a template's roles. `roles`: names of the roles that contain it. */
export interface StatementOfRoles {
  statement: RoleStatement;
  roles: string[];
}

/** The policy statements of all roles in a template, without duplicates. */
export function roleStatements(resources: TemplateResources, place: TemplatePlace): StatementOfRoles[] {
  const values = new TemplateValues(resources, place);
  const found = new Map<string, StatementOfRoles>();
  const add = (role: string, document: unknown) => {
    const { Statement } = (values.resolve(document) ?? {}) as { Statement?: RoleStatement | RoleStatement[] };
    for (const statement of listOf(Statement)) {
      const key = JSON.stringify(statement);
      const entry = found.get(key) ?? { statement, roles: [] };
      found.set(key, { statement, roles: [...new Set([...entry.roles, role])] });
    }
  };
  for (const [id, { Type, Properties = {} }] of Object.entries(resources)) {
    if (Type === 'AWS::IAM::Role')
      for (const { PolicyDocument } of listOf(Properties.Policies as { PolicyDocument: unknown }[] | undefined))
        add(values.nameOf(id), PolicyDocument);
    if (Type === 'AWS::IAM::Policy' || Type === 'AWS::IAM::ManagedPolicy')
      for (const role of [...listOf(Properties.Roles as unknown[] | undefined), ...attachedTo(resources, id)])
        add(String(values.resolve(role)), Properties.PolicyDocument);
  }
  return [...found.values()];
}

/** Roles that name a managed policy of the template among their own. */
const attachedTo = (resources: TemplateResources, policy: string): { Ref: string }[] =>
  Object.entries(resources)
    .filter(([, { Properties }]) =>
      listOf(Properties?.ManagedPolicyArns as { Ref?: string }[]).some(({ Ref }) => Ref === policy),
    )
    .map(([Ref]) => ({ Ref }));

/**
 * Permissions of the template's roles that a permissions boundary does not allow, according to IAM's policy simulator. A boundary grants
 * nothing by itself, so it is simulated as a policy. Actions with a wildcard are not simulated. One warning covers all conditions whose
 * values are only known at the time of a call.
 * https://docs.aws.amazon.com/IAM/latest/APIReference/API_SimulateCustomPolicy.html, 2026-11-24.
 * @throws the error of IAM when the caller may not read the policy
 */
export async function boundaryIssues(
  client: IAMClient,
  boundaryArn: string,
  statements: readonly StatementOfRoles[],
  place: TemplatePlace,
): Promise<Issue[]> {
  const document = await boundaryDocument(client, boundaryArn);
  if (document === undefined)
    return [problem('error', 'must be a managed policy that exists', boundaryArn, 'create it, or correct the name')];
  const exact = statements.filter(({ statement }) => isExact(statement));
  const found = await eachInTurn(exact, AT_ONCE, async (one) => ({
    one,
    denied: await deniedActions(client, document, one.statement, place),
  }));
  const unknownKeys = new Set(found.flatMap(({ denied }) => denied.flatMap(({ missingKeys }) => missingKeys)));
  const issues = missingIssues(boundaryArn, found);
  if (unknownKeys.size === 0) return issues;
  const got = `${boundaryArn}, which depends on ${[...unknownKeys].sort().join(', ')}`;
  const must = "must allow all permissions of the stack's roles";
  return [
    ...issues,
    problem('warning', must, got, 'run slipway verify after the deployment, which simulates the deployed roles'),
  ];
}

/** The default version of a managed policy; undefined when it does not exist. */
async function boundaryDocument(client: IAMClient, PolicyArn: string): Promise<string | undefined> {
  try {
    const { Policy } = await client.send(new GetPolicyCommand({ PolicyArn }));
    const VersionId = Policy?.DefaultVersionId;
    const { PolicyVersion } = await client.send(new GetPolicyVersionCommand({ PolicyArn, VersionId }));
    return decodeURIComponent(PolicyVersion?.Document ?? '{}');
  } catch (caught) {
    if (caught instanceof NoSuchEntityException) return undefined;
    throw caught;
  }
}

interface Denied {
  action: string;
  /** Denied by an explicit Deny of the boundary, rather than by a missing Allow. */
  isExplicit: boolean;
  /** Condition keys that the simulation has no value for. */
  missingKeys: string[];
}

async function deniedActions(
  client: IAMClient,
  document: string,
  statement: RoleStatement,
  place: TemplatePlace,
): Promise<Denied[]> {
  const own = contextOf(statement);
  const named = new Set(own.map(({ ContextKeyName }) => ContextKeyName));
  const question = {
    PolicyInputList: [document],
    ActionNames: actionsOf(statement),
    ResourceArns: resourcesOf(statement),
    ContextEntries: [...own, ...everyCall(place).filter(({ ContextKeyName }) => !named.has(ContextKeyName))],
  };
  const results = await itemsOf(paginateSimulateCustomPolicy({ client }, question), (page) => page.EvaluationResults);
  return results
    .filter((result) => !isAllowed(result))
    .map(({ EvalActionName: action = '', EvalDecision, MissingContextValues: missingKeys = [] }) => ({
      action,
      isExplicit: EvalDecision === 'explicitDeny',
      missingKeys,
    }));
}

/** Condition keys that every call of a role of the stack has and that company policies commonly check. */
function everyCall({ account, region }: TemplatePlace): ContextEntry[] {
  const text = (ContextKeyName: string, value: string): ContextEntry => ({
    ...{ ContextKeyName, ContextKeyValues: [value], ContextKeyType: 'string' },
  });
  return [
    text('aws:RequestedRegion', region),
    text('aws:PrincipalAccount', account),
    text('aws:ResourceAccount', account),
    text('aws:PrincipalType', 'AssumedRole'),
    { ContextKeyName: 'aws:SecureTransport', ContextKeyValues: ['true'], ContextKeyType: 'boolean' },
  ];
}

interface Gap {
  isExplicit: boolean;
  actions: Set<string>;
  statements: StatementOfRoles[];
}

/** One issue for each service with denied actions, with the statements that are affected. */
function missingIssues(
  boundary: string,
  found: readonly { one: StatementOfRoles; denied: readonly Denied[] }[],
): Issue[] {
  const gaps = new Map<string, Gap>();
  for (const { one, denied } of found)
    for (const { action, isExplicit, missingKeys } of denied) {
      if (missingKeys.length > 0) continue;
      const key = `${action.split(':')[0]} ${isExplicit}`;
      const gap = gaps.get(key) ?? { isExplicit, actions: new Set(), statements: [] };
      gap.actions.add(action);
      if (!gap.statements.includes(one)) gap.statements.push(one);
      gaps.set(key, gap);
    }
  return [...gaps.values()].map((gap) => gapIssue(boundary, gap));
}

function gapIssue(boundary: string, { isExplicit, actions, statements }: Gap): Issue {
  const Action = [...actions].sort();
  const names = [...new Set(statements.map(({ statement }) => statement.Sid ?? 'without a name'))].sort();
  const roles = new Set(statements.flatMap((one) => one.roles)).size;
  const all = statements.flatMap(({ statement }) => resourcesOf(statement).map(withUnknownNames));
  const added = JSON.stringify({ Effect: 'Allow', Action, Resource: [...new Set(all)].sort() });
  const of = `statement${names.length === 1 ? '' : 's'} ${names.join(', ')} of ${roles} role${roles === 1 ? '' : 's'}`;
  return problem(
    'error',
    `must allow ${Action.join(', ')} (${of})`,
    `${boundary}, which ${isExplicit ? 'denies' : 'does not allow'} that`,
    isExplicit ? 'remove these actions from its Deny' : `add to it ${added}`,
  );
}
