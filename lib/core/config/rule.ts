import type { CodeFolder } from './code-source';
import type { Descriptor } from './descriptor';
import { type Issue, type IssueLevel, type IssueText, issue } from './issue';
import type { RunSpec } from './run-spec';

/** Facts for rules in addition to the run itself. All are optional: a rule ignores facts that are not known. */
export interface RuleContext {
  descriptor?: Descriptor;
  region?: string;
  /** The local code folder; absent when the code is not a local folder. */
  codeFolder?: CodeFolder;
  /** Why the code folder cannot be read. */
  codeProblem?: string;
  /** The remedy for `codeProblem`; @default - name another folder */
  codeFix?: string;
}

/** The region of the run; undefined when it is not known. */
export const regionOf = ({ region, descriptor }: RuleContext): string | undefined => region ?? descriptor?.region;

/** A violation that a rule found in a run file. */
export interface Finding extends Omit<IssueText, 'fix'> {
  /** In the user's own terms, e.g. `compute.instanceType`; '' = the file as a whole. */
  path: string;
  /** The value as given. @default - the one at `path`, where there is one */
  got?: unknown;
  /** The remedy. @default remove it */
  fix?: string;
  /** Overrides the level of the rule. */
  level?: IssueLevel;
}

/** One named check of a resolved run. docs/rules says what it requires, why, and according to which source. */
export interface Rule {
  /** `<topic>/<name>`, stable, because users refer to it in `acknowledge`. */
  id: string;
  level: IssueLevel;
  /** Rules that are a matter of judgement may be acknowledged; restrictions of the service or a library may not. */
  mayAcknowledge?: true;
  /** Its finding depends only on the value that it names, so that it applies whatever else in the file is wrong. */
  isLocal?: true;
  check(run: RunSpec, context: RuleContext): Finding[];
}

/** The level of a rule, with `isLocal` and `mayAcknowledge`. */
export type RuleKind = `${IssueLevel}${'' | ', local'}${'' | ', may acknowledge'}`;

/** A rule by its id, its level with `isLocal` and `mayAcknowledge`, and its check. */
export const rule = (
  id: string,
  kind: RuleKind,
  check: (run: RunSpec, context: RuleContext) => Finding | Finding[],
): Rule => ({
  id,
  level: kind.split(',')[0] as IssueLevel,
  ...(kind.includes('local') && { isLocal: true }),
  ...(kind.includes('may acknowledge') && { mayAcknowledge: true }),
  check: (run, context) => [check(run, context)].flat().map((found) => withValue(found, run)),
});

/** For a finding that shows no value, although there is one at its path. */
export const UNSHOWN = Symbol('unshown');

/** The finding with the value at its path in a resolved file, unless it has one of its own. */
export function withValue<F extends Finding>(found: F, file: object): F {
  const value = 'got' in found ? found.got : valueAt(file, found.path);
  if (value !== UNSHOWN && (value !== undefined || 'got' in found)) return { ...found, got: value };
  const { got: _got, ...rest } = found;
  return rest as F;
}

/** The value at a path such as `data[0].s3`. Keys of a map may contain dots. */
export function valueAt(value: unknown, path: string): unknown {
  if (path === '') return value;
  const rest = path.replace(/^\.|^\[(\d+)\]/, '$1');
  const [found] = Object.entries(value ?? {})
    .filter(([key]) => rest === key || (rest.startsWith(key) && /[.[]/.test(rest.charAt(key.length))))
    .sort(([one], [other]) => other.length - one.length);
  return found && valueAt(found[1], rest.slice(found[0].length));
}

/** The entries of these maps of a run. */
export const entriesOf = (
  run: RunSpec,
  sections: readonly ('hyperparameters' | 'environmentVariables' | 'code.arguments')[],
) =>
  sections.flatMap((section) => {
    const values: Readonly<Record<string, unknown>> = section === 'code.arguments' ? run.code.arguments : run[section];
    return Object.entries(values).map(([key, value]) => ({ section, path: `${section}.${key}`, key, value }));
  });

/** The finding about the value at `path` if `broken`, otherwise none. */
export const when = <F extends Omit<Finding, 'path'>>(broken: boolean, path: string, finding: F) =>
  broken ? [{ path, ...finding }] : [];

/** Finding when an option of section `distribution` has another value than the one that something needs. */
export const mustBe = (run: RunSpec, option: 'launcher' | 'contract', needed: string, why: string): Finding[] =>
  when(run.distribution[option] !== needed, `distribution.${option}`, {
    must: `must be ${needed} ${why}`,
    fix: `use ${needed}`,
  });

/** Restricts a rule to runs of which something holds. */
export const ruleWhere =
  (applies: (run: RunSpec) => boolean) =>
  (given: Rule): Rule => ({ ...given, check: (run, context) => (applies(run) ? given.check(run, context) : []) });

/** Restricts a rule to training runs. */
export const trainingRule = ruleWhere(({ kind }) => kind === 'training');

/** Restricts a rule to runs of the built-in trainer. */
export const builtinRule = ruleWhere(({ kind, code }) => kind === 'training' && code.builtin === 'builtin');

/**
 * Creates the rules for one subject of training runs. `read` extracts from a run what the rules need; undefined means that the run does not
 * have the subject, and the rules find nothing.
 */
export const rulesAbout =
  <Subject>(read: (run: RunSpec) => Subject | undefined) =>
  (
    id: string,
    kind: RuleKind,
    find: (run: RunSpec, subject: Subject, context: RuleContext) => Finding | Finding[],
  ): Rule =>
    trainingRule(
      rule(id, kind, (run, context) => {
        const subject = read(run);
        return subject === undefined ? [] : find(run, subject, context);
      }),
    );

/** Converts a finding of a rule to an issue. */
export function issueOf(rule: Pick<Rule, 'id' | 'level'>, { path, level, ...text }: Finding): Issue {
  return issue(rule.id, level ?? rule.level, path, { fix: 'remove it', ...text });
}

/** The findings of one rule as issues. */
export function applyRule(rule: Rule, run: RunSpec, context: RuleContext): Issue[] {
  return rule.check(run, context).map((found) => issueOf(rule, found));
}
