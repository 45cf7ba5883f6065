import type { Descriptor } from './descriptor';
import { type Issue, type IssueLevel, type IssueText, issue } from './issue';
import type { RunSpec } from './run-spec';

/** What a rule may know beside the run itself. Everything is optional: what is not known says nothing. */
export interface RuleContext {
  descriptor?: Descriptor;
  region?: string;
  /** Whether a path inside the local code folder exists; absent when the code is not a local folder. */
  codeExists?: (path: string) => boolean;
  /** Why the code folder cannot be read. */
  codeProblem?: string;
  /** What to do about `codeProblem`; @default - name another folder */
  codeFix?: string;
}

/** Where the run will be; undefined when nothing says so. */
export const regionOf = ({ region, descriptor }: RuleContext): string | undefined => region ?? descriptor?.region;

/** What a rule found in a run file. */
export interface Finding extends IssueText {
  /** In the user's own words, e.g. `compute.instanceType`; '' = the file as a whole. */
  path: string;
  /** Overrides the rule's level. */
  level?: IssueLevel;
}

/** One named check over a resolved run. */
export interface Rule {
  /** `<topic>/<name>`, stable: it is what `acknowledge` names. */
  id: string;
  level: IssueLevel;
  /** Judgement rules may be acknowledged; what the service or a library refuses may not. */
  mayAcknowledge?: true;
  /** Its finding depends on the one value that it names, so that it holds whatever else in the file is wrong. */
  isLocal?: true;
  /** One sentence: what must hold. */
  what: string;
  /** Why, and what happens otherwise. */
  why: string;
  /** Where it is documented. */
  source: string;
  check(run: RunSpec, context: RuleContext): Finding[];
}

/** One finding when `broken`, else none. */
export const when = <F extends Finding>(broken: boolean, finding: F): F[] => (broken ? [finding] : []);

/** A rule that looks at training runs only. */
export function trainingRule(rule: Rule): Rule {
  return { ...rule, check: (run, context) => (run.kind === 'training' ? rule.check(run, context) : []) };
}

/** A rule as `rulesAbout` takes it. */
export interface RuleAbout<Subject> extends Omit<Rule, 'check'> {
  find(run: RunSpec, subject: Subject, context: RuleContext): Finding[];
}

/**
 * Makes the rules of one subject of training runs. `read` takes from a run what they need of it; undefined means that the run
 * does not have the subject, and they find nothing.
 */
export function rulesAbout<Subject>(read: (run: RunSpec) => Subject | undefined): (given: RuleAbout<Subject>) => Rule {
  return ({ find, ...rest }) =>
    trainingRule({
      ...rest,
      check: (run, context) => {
        const subject = read(run);
        return subject === undefined ? [] : find(run, subject, context);
      },
    });
}

/** What a rule has found, as an issue. */
export function issueOf(rule: Pick<Rule, 'id' | 'level'>, { path, level, ...text }: Finding): Issue {
  return issue(rule.id, level ?? rule.level, path, text);
}

/** The findings of one rule as issues. */
export function applyRule(rule: Rule, run: RunSpec, context: RuleContext): Issue[] {
  return rule.check(run, context).map((found) => issueOf(rule, found));
}
