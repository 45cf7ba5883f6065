// Tables of run files and what is said of them, in YAML: `with` are parameters of the library, `also` other fields of the file, `issues` is every issue.

import type { Descriptor } from '../../lib/core/config/descriptor';
import { applyRule, type RuleContext } from '../../lib/core/config/rule';
import type { JobPlan } from '../../lib/core/job/plan';
import { RULES } from '../../lib/core/rules';
import { BASE, DESCRIPTOR, planOf, runOf } from './runs';
import { testCases } from './tables';

interface Fields {
  distribution?: object | null;
  [field: string]: unknown;
}
/** One run file, and what must come of it. */
interface Case {
  name?: string;
  with?: object;
  also?: Fields;
  context?: RuleContext;
  /** Added to the descriptor of an environment; absent: there is none. */
  environment?: object;
  /** What else the plan of the attempt says, e.g. `attempt`. */
  plan?: object;
  /** The rules that are asked, by the beginning of their ids; @default - `rules` of the table */
  rules?: string[];
  except?: string[];
  /** Level, rule, place and message of each issue. */
  issues?: string[];
  [outcome: string]: unknown;
}
interface Table {
  base: Fields;
  rules: string[];
  except?: string[];
  cases: Case[];
}
/** What else a case may name, e.g. `layout`, as plain data. A case has only those that it names. `base` is the plan of the first case. */
type Outcomes = Readonly<Record<string, (plan: JobPlan, base: () => JobPlan) => unknown>>;

/** The run file of a case. A field that is null in `base` or `also` is left out. */
function fileOf({ base }: Table, { with: parameters, also }: Case): object {
  const fields = { ...BASE, ...base, ...also };
  const distribution = { ...base.distribution, ...also?.distribution, ...(parameters && { parameters }) };
  const all = { ...fields, distribution: fields.distribution === null ? null : distribution };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== null));
}

/** The descriptor of the environment, with what a case says of it; null: without that. */
function descriptorOf({ environment = {} }: Case): Descriptor {
  const said = Object.entries(environment).map(([key, value]) => [key, value ?? undefined]);
  return { ...DESCRIPTOR, ...Object.fromEntries(said) };
}

const plans = new WeakMap<Case, JobPlan>();

function planOfCase(table: Table, given: Case): JobPlan {
  const known = plans.get(given);
  if (known) return known;
  const plan = { ...planOf(runOf(fileOf(table, given))), ...given.plan, descriptor: descriptorOf(given) };
  plans.set(given, plan);
  return plan;
}

/** What the rules find, without those of `except`. */
function saidOf(table: Table, given: Case, { run, descriptor }: JobPlan): string[] {
  const except = given.except ?? table.except ?? [];
  const rules = given.rules ?? table.rules;
  const context = { ...given.context, ...(given.environment && { descriptor }) };
  return RULES.filter(({ id }) => rules.some((prefix) => id.startsWith(prefix)) && !except.includes(id))
    .flatMap((rule) => applyRule(rule, run, context))
    .map(({ level, rule, message }) => `${level} ${rule} ${message}`);
}

function outcomeOf(table: Table, given: Case, outcomes: Outcomes): object {
  const plan = planOfCase(table, given);
  const base = () => planOfCase(table, table.cases[0] ?? given);
  const named = Object.entries(outcomes).filter(([key]) => key in given);
  return {
    ...(table.rules.length > 0 && { issues: saidOf(table, given, plan) }),
    ...Object.fromEntries(named.map(([key, read]) => [key, read(plan, base)])),
  };
}

/** Each value of plain data by its place. */
function valuesOf(value: unknown, place: string): [string, string][] {
  const isPlain = typeof value !== 'object' || value === null || Object.keys(value).length === 0;
  if (isPlain) return value === undefined ? [] : [[place, JSON.stringify(value)]];
  return Object.entries(value).flatMap(([key, item]) => valuesOf(item, place === '' ? key : `${place}.${key}`));
}

const isTree = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && Object.keys(value).length > 0;

/** What of `after` is otherwise than `before`: a line for each value that is new or another, and for each part that is gone. */
export function changes(before: unknown, after: unknown, place = ''): string[] {
  if (after === undefined) return before === undefined ? [] : [`${place} is absent`];
  if (!isTree(before) || !isTree(after)) {
    const isSame = JSON.stringify(before) === JSON.stringify(after);
    return isSame ? [] : valuesOf(after, place).map((pair) => pair.join(': '));
  }
  const keys = new Set([...Object.keys(after), ...Object.keys(before)]);
  return [...keys].flatMap((key) => changes(before[key], after[key], place === '' ? key : `${place}.${key}`));
}

/** Tests every table of a folder. */
export const testTables = (folder: string, outcomes: Outcomes = {}): void =>
  testCases<Case, Table>(folder, (table, given) => outcomeOf(table, given, outcomes));
