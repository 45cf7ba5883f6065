import type { ContextEntry, EvaluationResult } from '@aws-sdk/client-iam';
import { GetBucketPolicyCommand, type S3Client } from '@aws-sdk/client-s3';
import { matchesGlob } from '../../core/config/formats/patterns';
import { answerOrUndefined } from './answers';

/** A statement of a resource policy, as returned by a service. */
export interface PolicyStatement {
  Sid?: string;
  Effect?: string;
  Principal?: string | Record<string, string | string[]>;
  NotPrincipal?: unknown;
  Action?: string | string[];
  Resource?: string | string[];
  Condition?: Record<string, Record<string, unknown>>;
}

/** A policy document as a service returns it: one statement need not be in a list. */
interface PolicyDocument {
  Statement?: PolicyStatement | PolicyStatement[];
}

/** Converts to a list: policies treat one value and a list of one value alike. */
export const listOf = <T>(value: T | T[] | undefined): T[] =>
  value === undefined ? [] : Array.isArray(value) ? value : [value];

/** Statements of a policy document; empty when there is no document. */
export const statementsIn = (policy: string | undefined): PolicyStatement[] =>
  policy === undefined ? [] : listOf((JSON.parse(policy) as PolicyDocument).Statement);

/** The policy of a bucket, to be extended; empty when it has none. */
export async function bucketPolicy(s3: S3Client, Bucket: string): Promise<{ Statement: PolicyStatement[] }> {
  const found = await answerOrUndefined(s3.send(new GetBucketPolicyCommand({ Bucket })), 'NoSuchBucketPolicy');
  const policy: PolicyDocument = found ? JSON.parse(found.Policy ?? '') : { Version: '2012-10-17' };
  return { ...policy, Statement: listOf(policy.Statement) };
}

/** AWS principals of a statement; `*` for everyone. */
export const awsPrincipals = ({ Principal }: PolicyStatement): string[] =>
  typeof Principal === 'string' ? [Principal] : listOf(Principal?.AWS);

/** Whether a statement concerns every role of an account: it names everyone or the account, or others as exceptions. */
export const concernsAccount = (statement: PolicyStatement, account: string): boolean =>
  statement.NotPrincipal !== undefined ||
  awsPrincipals(statement).some((name) => name === '*' || name === account || name.endsWith(`::${account}:root`));

const WILDCARDS = { one: '?' };

/** Whether the statement's action patterns match this action. */
export const includesAction = ({ Action }: PolicyStatement, action: string): boolean =>
  listOf(Action).some((pattern) => matchesGlob(pattern.toLowerCase(), action.toLowerCase(), WILDCARDS));

/** Whether the statement's resource patterns match this resource. */
export const includesResource = ({ Resource }: PolicyStatement, resource: string): boolean =>
  listOf(Resource).some((pattern) => matchesGlob(pattern, resource, WILDCARDS));

/** Canonical text of a statement, regardless of member order and of whether one value is in a list. */
export function canonicalStatement(value: unknown): string {
  if (Array.isArray(value))
    return value.length === 1 ? canonicalStatement(value[0]) : `[${value.map(canonicalStatement).sort().join()}]`;
  if (typeof value !== 'object' || value === null) return String(value);
  const entries = Object.entries(value).sort(([a], [b]) => a.localeCompare(b));
  return `{${entries.map(([key, member]) => `${key}:${canonicalStatement(member)}`).join()}}`;
}

export interface RoleStatement {
  Sid?: string;
  Effect: 'Allow' | 'Deny';
  Action?: string | string[];
  Resource?: string | string[];
  Condition?: Record<string, Record<string, string | string[]>>;
}

export const actionsOf = (statement: RoleStatement): string[] => listOf(statement.Action);
export const resourcesOf = (statement: RoleStatement): string[] => listOf(statement.Resource);

/**
 * Whether IAM's policy simulator can evaluate the statement: it accepts no wildcard actions and no statements with NotAction or
 * NotResource.
 */
export const isExact = (statement: RoleStatement): boolean =>
  statement.Effect === 'Allow' &&
  resourcesOf(statement).length > 0 &&
  actionsOf(statement).every((action) => !action.includes('*'));

/** Whether an action is allowed. A statement may combine bucket actions and object actions: each needs only one of its resources. */
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
 * Context entries that satisfy the conditions of a statement: the first value of each key, with `*` in patterns replaced. Keys that must be
 * absent are omitted.
 * @param other values that replace the satisfying ones, for a request that must be denied
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
  // A key that must be present, with any value.
  for (const [key, absent] of Object.entries(Condition.Null ?? {})) {
    if (String(absent) !== 'false' || entries.has(key)) continue;
    entries.set(key, { ContextKeyName: key, ContextKeyValues: ['any'], ContextKeyType: 'stringList' });
  }
  return [...entries.values()];
}
