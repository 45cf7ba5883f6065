import {
  type ContextEntry,
  GetRoleCommand,
  GetRolePolicyCommand,
  type IAMClient,
  paginateListRolePolicies,
} from '@aws-sdk/client-iam';

/** One statement of a policy as IAM keeps it. */
export interface Statement {
  Sid?: string;
  Effect: 'Allow' | 'Deny';
  Action?: string | string[];
  Resource?: string | string[];
  Condition?: Record<string, Record<string, string | string[]>>;
}

/** The statements of a role, inline and managed. */
export interface RolePolicies {
  name: string;
  arn: string;
  statements: Statement[];
}

const listOf = <T>(value: T | T[] | undefined): T[] =>
  value === undefined ? [] : Array.isArray(value) ? value : [value];

/** Actions of a statement as a list. */
export const actionsOf = (statement: Statement): string[] => listOf(statement.Action);
/** Resources of a statement as a list. */
export const resourcesOf = (statement: Statement): string[] => listOf(statement.Resource);

/** The inline policies of a role; policies of AWS that are attached to it are not ours to check. */
export async function rolePolicies(client: IAMClient, RoleName: string): Promise<RolePolicies> {
  const { Role } = await client.send(new GetRoleCommand({ RoleName }));
  const statements: Statement[] = [];
  for await (const page of paginateListRolePolicies({ client }, { RoleName })) {
    for (const PolicyName of page.PolicyNames ?? []) {
      const { PolicyDocument } = await client.send(new GetRolePolicyCommand({ RoleName, PolicyName }));
      const { Statement } = JSON.parse(decodeURIComponent(PolicyDocument ?? '{}')) as {
        Statement?: Statement | Statement[];
      };
      statements.push(...listOf(Statement));
    }
  }
  return { name: RoleName, arn: Role?.Arn ?? '', statements };
}

const CONTEXT_TYPES: readonly (readonly [RegExp, NonNullable<ContextEntry['ContextKeyType']>])[] = [
  [/Numeric/, 'numeric'],
  [/Bool/, 'boolean'],
  [/Date/, 'date'],
  [/IpAddress/, 'ip'],
];

/**
 * Context with which the conditions of a statement hold: the first value of each key, with `*` of a pattern filled in. Keys that must be
 * absent are left out.
 * @param other the value to send instead of the one that holds, for a request that must be denied
 */
export function contextOf(
  { Condition = {} }: Statement,
  other: Readonly<Record<string, string[]>> = {},
): ContextEntry[] {
  const entries = new Map<string, ContextEntry>();
  for (const [operator, keys] of Object.entries(Condition)) {
    if (/^Null$/.test(operator)) continue;
    const isMany = /^For(All|Any)/.test(operator);
    const type = CONTEXT_TYPES.find(([pattern]) => pattern.test(operator))?.[1] ?? 'string';
    for (const [key, value] of Object.entries(keys)) {
      const [first = ''] = listOf(value);
      entries.set(key, {
        ContextKeyName: key,
        ContextKeyValues: other[key] ?? [first.replaceAll('*', 'any')],
        ContextKeyType: isMany ? `${type}List` : type,
      } as ContextEntry);
    }
  }
  // A key that must be there, whatever its value.
  for (const [key, absent] of Object.entries(Condition.Null ?? {})) {
    if (String(absent) !== 'false' || entries.has(key)) continue;
    entries.set(key, { ContextKeyName: key, ContextKeyValues: ['any'], ContextKeyType: 'stringList' });
  }
  return [...entries.values()];
}
