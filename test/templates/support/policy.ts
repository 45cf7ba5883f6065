// A small evaluator of IAM policies: one policy, one request, the answer that AWS documents.
// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_evaluation-logic.html and
// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements_condition_operators.html, 2026-11-22.

export interface Statement {
  Sid?: string;
  Effect: 'Allow' | 'Deny';
  Principal?: unknown;
  Action?: string | string[];
  Resource?: string | string[];
  NotResource?: string | string[];
  Condition?: Record<string, Record<string, unknown>>;
}

export interface Request {
  /** Absent: an identity-based policy, whose principal is the one it is attached to. */
  principal?: { service?: string; aws?: string };
  action: string;
  resource: string;
  /** Condition keys that the request carries, names in any case. A key that is not here is absent. */
  context?: Record<string, string | readonly string[]>;
}

const list = (value: unknown): string[] => (value === undefined ? [] : ([] as unknown[]).concat(value).map(String));

/** `*` is any text, `?` one character. */
export function matches(pattern: string, text: string): boolean {
  const source = [...pattern].map((c) =>
    c === '*' ? '.*' : c === '?' ? '.' : c.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'),
  );
  return new RegExp(`^${source.join('')}$`, 's').test(text);
}

/** Allow, an explicit Deny, or neither. */
export function evaluate(statements: readonly Statement[], request: Request): 'Allow' | 'Deny' | 'ImplicitDeny' {
  const applying = statements.filter((statement) => applies(statement, request));
  if (applying.some((statement) => statement.Effect === 'Deny')) return 'Deny';
  return applying.length > 0 ? 'Allow' : 'ImplicitDeny';
}

/** The statements that hold for a request, whatever their effect. */
export function applies(statement: Statement, request: Request): boolean {
  return (
    isPrincipal(statement, request) &&
    list(statement.Action).some((action) => matches(action.toLowerCase(), request.action.toLowerCase())) &&
    isResource(statement, request) &&
    Object.entries(statement.Condition ?? {}).every(([operator, keys]) =>
      Object.entries(keys).every(([key, values]) => holds(operator, list(values), contextValue(request, key))),
    )
  );
}

function isResource({ Resource, NotResource }: Statement, { resource }: Request): boolean {
  if (NotResource !== undefined) return !list(NotResource).some((pattern) => matches(pattern, resource));
  return list(Resource ?? '*').some((pattern) => matches(pattern, resource));
}

function isPrincipal({ Principal }: Statement, { principal }: Request): boolean {
  if (Principal === undefined) return principal === undefined;
  if (Principal === '*') return true;
  const { AWS, Service } = Principal as { AWS?: unknown; Service?: unknown };
  if (list(AWS).includes('*')) return true;
  if (principal?.service !== undefined) return list(Service).includes(principal.service);
  const root = /^(arn:[^:]+:iam::\d+):/.exec(principal?.aws ?? '')?.[1];
  return list(AWS).some((named) => named === principal?.aws || named === `${root}:root`);
}

function contextValue({ context }: Request, key: string): readonly string[] | undefined {
  const found = Object.entries(context ?? {}).find(([name]) => name.toLowerCase() === key.toLowerCase());
  return found && list(found[1]);
}

function holds(operator: string, wanted: readonly string[], given: readonly string[] | undefined): boolean {
  const [, set, name = '', ifExists] = /^(?:(ForAllValues|ForAnyValue):)?(\w+?)(IfExists)?$/.exec(operator) ?? [];
  if (name === 'Null') return wanted.includes(String(given === undefined));
  const negated = name.includes('Not');
  if (given === undefined) return Boolean(ifExists) || negated || set === 'ForAllValues';
  const one = (value: string) => {
    const any = wanted.some((item) => compare(name.replace('Not', ''), item, value));
    return negated ? !any : any;
  };
  return set === 'ForAllValues' ? given.every(one) : given.some(one);
}

function compare(operator: string, wanted: string, given: string): boolean {
  switch (operator) {
    case 'StringEquals':
    case 'Bool':
      return wanted === given;
    case 'StringLike':
    case 'ArnLike':
    case 'ArnEquals':
      return matches(wanted, given);
    case 'NumericLessThanEquals':
      return Number(given) <= Number(wanted);
    case 'NumericLessThan':
      return Number(given) < Number(wanted);
    case 'NumericGreaterThanEquals':
      return Number(given) >= Number(wanted);
    case 'NumericEquals':
      return Number(given) === Number(wanted);
    default:
      throw new Error(`condition operator ${operator} is not known to this evaluator`);
  }
}
