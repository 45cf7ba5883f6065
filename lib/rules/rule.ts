import type { Finding, Rule } from '../spec/rule';

export type { Finding, Rule, RuleContext } from '../spec/rule';

/** One finding when `broken`, else none. */
export const when = (broken: boolean, finding: Finding): Finding[] => (broken ? [finding] : []);

const GUIDE = 'https://docs.aws.amazon.com/sagemaker/latest/';
/** The page of CreateTrainingJob or of one of its types. */
export const api = (type = 'CreateTrainingJob') => `${GUIDE}APIReference/API_${type}.html`;
/** A page of the developer guide. */
export const guide = (page: string) => `${GUIDE}dg/${page}.html`;

/** A rule that looks at training runs only. */
export function trainingRule(rule: Rule): Rule {
  return { ...rule, check: (run, context) => (run.kind === 'training' ? rule.check(run, context) : []) };
}
