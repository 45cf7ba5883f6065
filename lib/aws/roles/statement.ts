import type { ContextEntry, EvaluationResult } from '@aws-sdk/client-iam';
import { listOf } from '../policy-document';

/** One statement of a role's policy as IAM keeps it. */
export interface RoleStatement {
  Sid?: string;
  Effect: 'Allow' | 'Deny';
  Action?: string | string[];
  Resource?: string | string[];
  Condition?: Record<string, Record<string, string | string[]>>;
}

/** Actions of a statement as a list. */
export const actionsOf = (statement: RoleStatement): string[] => listOf(statement.Action);
/** Resources of a statement as a list. */
export const resourcesOf = (statement: RoleStatement): string[] => listOf(statement.Resource);

/** Whether the actions can be asked of IAM's simulator, which takes none with a wildcard, and no statement by exclusion. */
export const isExact = (statement: RoleStatement): boolean =>
  statement.Effect === 'Allow' &&
  resourcesOf(statement).length > 0 &&
  actionsOf(statement).every((action) => !action.includes('*'));

/** Whether an action is allowed. A statement may hold actions on buckets beside actions on objects: each needs one of its resources, not all. */
export const isAllowed = ({ EvalDecision, ResourceSpecificResults = [] }: EvaluationResult): boolean =>
  EvalDecision === 'allowed' ||
  ResourceSpecificResults.some(({ EvalResourceDecision }) => EvalResourceDecision === 'allowed');

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
  { Condition = {} }: RoleStatement,
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
