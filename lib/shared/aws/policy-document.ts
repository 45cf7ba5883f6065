import { matchesGlob } from '../../core/config/formats/glob';

/** A statement of a resource policy, as returned by a service. */
export interface PolicyStatement {
  Sid?: string;
  Effect?: string;
  Principal?: string | Record<string, string | string[]>;
  Action?: string | string[];
  Resource?: string | string[];
  Condition?: Record<string, Record<string, unknown>>;
}

/** Converts to a list: policies treat one value and a list of one value alike. */
export const listOf = <T>(value: T | T[] | undefined): T[] =>
  value === undefined ? [] : Array.isArray(value) ? value : [value];

/** Statements of a policy document; empty when there is no document. */
export const statementsIn = (policy: string | undefined): PolicyStatement[] =>
  policy === undefined ? [] : [(JSON.parse(policy) as { Statement?: PolicyStatement[] }).Statement ?? []].flat();

/** AWS principals of a statement; `*` for everyone. */
export const awsPrincipals = ({ Principal }: PolicyStatement): string[] =>
  typeof Principal === 'string' ? [Principal] : listOf(Principal?.AWS);

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
