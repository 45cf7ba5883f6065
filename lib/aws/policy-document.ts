/** A statement of a resource policy, as a service answers it. */
export interface PolicyStatement {
  Sid?: string;
  Effect?: string;
  Principal?: string | Record<string, string | string[]>;
  Action?: string | string[];
  Resource?: string | string[];
  Condition?: Record<string, Record<string, unknown>>;
}

/** One value and a list of it are the same in a policy. */
export const listOf = <T>(value: T | T[] | undefined): T[] =>
  value === undefined ? [] : Array.isArray(value) ? value : [value];

/** Statements of a policy document; none where there is no document. */
export const statementsIn = (policy: string | undefined): PolicyStatement[] =>
  policy === undefined ? [] : [(JSON.parse(policy) as { Statement?: PolicyStatement[] }).Statement ?? []].flat();

/** AWS principals that a statement names; `*` for everybody. */
export const awsPrincipals = ({ Principal }: PolicyStatement): string[] =>
  typeof Principal === 'string' ? [Principal] : listOf(Principal?.AWS);

/** Whether the statement's actions, with their `*` and `?`, include this one. */
export const includesAction = ({ Action }: PolicyStatement, action: string): boolean =>
  listOf(Action).some((pattern) => matches(pattern.toLowerCase(), action.toLowerCase()));

/** Whether the statement's resources, with their `*` and `?`, include this one. */
export const includesResource = ({ Resource }: PolicyStatement, resource: string): boolean =>
  listOf(Resource).some((pattern) => matches(pattern, resource));

function matches(pattern: string, text: string): boolean {
  const parts = pattern
    .replace(/[.+^${}()|[\]\\]/g, '\\$&')
    .replaceAll('*', '.*')
    .replaceAll('?', '.');
  return new RegExp(`^${parts}$`).test(text);
}

/** One text for statements that differ in the order of their members, or in a list of one and its entry. */
export function canonicalStatement(value: unknown): string {
  if (Array.isArray(value))
    return value.length === 1 ? canonicalStatement(value[0]) : `[${value.map(canonicalStatement).sort().join()}]`;
  if (typeof value !== 'object' || value === null) return String(value);
  const entries = Object.entries(value).sort(([a], [b]) => a.localeCompare(b));
  return `{${entries.map(([key, member]) => `${key}:${canonicalStatement(member)}`).join()}}`;
}
