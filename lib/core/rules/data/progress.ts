import { countGroups, regexProblem } from '../../config/formats/patterns';
import { type Finding, type Rule, rule } from '../../config/rule';
import type { RunSpec } from '../../config/run-spec';

function expression(run: RunSpec, option: 'stepRegex' | 'lossRegex', means: string, example: string): Finding[] {
  const regex = run.progress[option];
  if (regex === undefined) return [];
  const path = `progress.${option}`;
  const problem = regexProblem(regex);
  if (problem) return [{ path, must: 'must be a regular expression in JavaScript and in Python', fix: problem }];
  const groups = countGroups(regex) ?? 0;
  // The expression for steps may have several groups: since the first release, its first group counts.
  const isRight = option === 'stepRegex' ? groups > 0 : groups === 1;
  const must =
    option === 'stepRegex' ? 'must contain a group that matches' : 'must contain exactly one group, which matches';
  return isRight ? [] : [{ path, must: `${must} the ${means}`, fix: `use for example ${example}` }];
}

/** Rules for the expressions with which the driver reads progress. */
export const PROGRESS_RULES: readonly Rule[] = [
  rule('progress/step-regex', 'error, local', (run) => expression(run, 'stepRegex', 'step', 'step=(\\d+)')),
  rule('progress/loss-regex', 'error, local', (run) => expression(run, 'lossRegex', 'loss', 'loss=([-+.0-9e]+)')),
];
