// Every statement of every policy is one that IAM can match: its actions exist, its resources are of the actions' types, its
// condition keys are sent with the actions. Held against an older and a newer edition of the Service Authorization Reference.
import reference from '../../fixtures/service-authorization.json';
import { matches, type Statement } from '../support/policy';
import { type Resources, resolveValue } from '../support/values';

interface Facts {
  resources: string[];
  keys: string[];
}
interface Edition {
  source: string;
  actions: Record<string, Facts>;
}

const EDITIONS = reference.editions as Edition[];
/** Resources that no edition knows for the action, and why they are named nevertheless. */
const TOLERATED: Readonly<Record<string, string>> = {
  // The job is judged by a statement of its own: older editions ask for no more than that.
  'sagemaker:CreateTrainingJob on training-plan': 'The type is newer than the older edition.',
  'sagemaker:CreateTrainingJob on reserved-capacity': 'The type is newer than the older edition.',
  'logs:CreateLogStream on log-group':
    'The embedded AWS asks for CreateLogStream on the group, AWS on the stream; both are named.',
};

const list = (value: unknown): string[] => (value === undefined ? [] : ([] as unknown[]).concat(value).map(String));

/** Global keys that are not sent with every request: the reference says with which ones they are. */
const TAG_KEY = /^aws:(RequestTag|ResourceTag)\/|^aws:TagKeys$/;

/** All policies of a template with references filled in, by what they belong to. */
export function policiesOf(resources: Resources): [string, Statement[]][] {
  return Object.entries(resources).flatMap(([id, { Properties }]) =>
    ['PolicyDocument', 'KeyPolicy', 'AssumeRolePolicyDocument', 'ResourcePolicy'].flatMap((name) => {
      const document = resolveValue(resources, Properties?.[name]) as { Statement: Statement[] } | undefined;
      return document?.Statement ? [[id, document.Statement] as [string, Statement[]]] : [];
    }),
  );
}

/** What IAM could not match in any policy of a template, as sentences. */
export function unmatchable(resources: Resources): string[] {
  return policiesOf(resources).flatMap(([id, statements]) =>
    statements.flatMap((statement) => problemsOf(statement).map((problem) => `${id}: ${problem}`)),
  );
}

/** What IAM could not match in one statement. */
export function problemsOf(statement: Statement): string[] {
  const actions = list(statement.Action).filter(
    (action) => !action.includes('*') && !action.startsWith('sts:AssumeRole'),
  );
  return EDITIONS.flatMap(({ source, actions: known }, index) => {
    const facts = actions.flatMap((action) => {
      const found = factsOf(known, action);
      return found ? [[action, found] as const] : [];
    });
    const unknown = index === 0 ? actions.filter((action) => !factsOf(known, action)) : [];
    return [
      ...unknown.map(
        (action) => `${action} is no action of ${source}; check it, then run scripts/authorization-reference.py`,
      ),
      ...resourceProblems(statement, facts, source),
      ...keyProblems(statement, facts, source),
    ];
  });
}

/** IAM compares names of actions without case. */
function factsOf(known: Record<string, Facts>, action: string): Facts | undefined {
  const name = Object.keys(known).find((key) => key.toLowerCase() === action.toLowerCase());
  return name === undefined ? undefined : known[name];
}

function resourceProblems(statement: Statement, facts: (readonly [string, Facts])[], source: string): string[] {
  const resources = list(statement.Resource);
  if (resources.length === 0 || resources.includes('*')) return [];
  const fits = (resource: string, { resources: types }: Facts) =>
    types.some((type) => overlapOfArns(type.replace(/\$\{\w+\}/g, '*'), resource));
  const scoped = facts.filter(([, { resources: types }]) => types.length === 0);
  const unused = resources.filter((resource) => !facts.some(([, known]) => fits(resource, known)));
  const unmet = facts.filter(
    ([action, known]) =>
      known.resources.length > 0 &&
      !resources.some((r) => fits(r, known)) &&
      !resources.every((r) => isTolerated([[action, known]], r)),
  );
  return [
    ...scoped.map(([action]) => `${action} has no resource type in ${source}, so that only * matches it`),
    ...unmet.map(([action]) => `${action} matches none of ${resources.join(', ')} in ${source}`),
    ...(facts.length > 0 && scoped.length === 0 ? unused.filter((resource) => !isTolerated(facts, resource)) : []).map(
      (r) => `${r} is a resource of none of the actions in ${source}`,
    ),
  ];
}

function isTolerated(facts: (readonly [string, Facts])[], resource: string): boolean {
  const kind = (resource.split(':')[5] ?? '').split('/')[0] ?? '';
  return facts.some(([action]) => `${action} on ${kind}` in TOLERATED);
}

function keyProblems(statement: Statement, facts: (readonly [string, Facts])[], source: string): string[] {
  const keys = Object.values(statement.Condition ?? {}).flatMap((operands) => Object.keys(operands));
  return keys
    .filter((key) => !key.toLowerCase().startsWith('aws:') || TAG_KEY.test(key))
    .flatMap((key) =>
      facts
        .filter(([, known]) => !known.keys.some((pattern) => isKey(pattern, key)))
        .map(([action]) => `${key} is not sent with ${action} in ${source}`),
    );
}

const isKey = (pattern: string, key: string) =>
  matches(pattern.replace(/\$\{\w+\}|<\w+>/g, '*').toLowerCase(), key.toLowerCase());

/** Whether some ARN fits both patterns: their first five parts one by one, as IAM compares them, and the resource as a whole. */
function overlapOfArns(a: string, b: string): boolean {
  const [first, second] = [a, b].map((arn) => {
    const parts = arn.split(':');
    return [...parts.slice(0, 5), parts.slice(5).join(':')];
  });
  return (first ?? []).every((part, index) => overlap(part, second?.[index] ?? ''));
}

/** Whether some text fits both patterns. */
export function overlap(a: string, b: string): boolean {
  if (a === '' && b === '') return true;
  if (a.startsWith('*')) return overlap(a.slice(1), b) || (b !== '' && overlap(a, b.slice(1)));
  if (b.startsWith('*')) return overlap(a, b.slice(1)) || (a !== '' && overlap(a.slice(1), b));
  return a !== '' && b !== '' && (a[0] === b[0] || a[0] === '?' || b[0] === '?') && overlap(a.slice(1), b.slice(1));
}
