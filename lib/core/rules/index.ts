import { nearest } from '../catalog/nearest';
import { type Issue, issue, orList } from '../config/issue';
import { onAlternative } from '../config/resolve-run';
import { applyRule, type Finding, issueOf, type Rule, type RuleContext } from '../config/rule';
import type { RunSpec } from '../config/run-spec';
import { STRATEGIES } from '../distribution';
import { COMPUTE_RULES } from './compute/compute';
import { HOST_RULES } from './compute/hosts';
import { LAUNCHER_RULES } from './compute/launcher';
import { LIMIT_RULES } from './compute/limits';
import { NETWORK_RULES } from './compute/network';
import { CHECKPOINT_RULES } from './data/checkpoints';
import { CODE_RULES } from './data/code';
import { DATA_RULES } from './data/data';
import { MIXTURE_RULES } from './data/mixture';
import { PROCESSING_RULES } from './data/processing';
import { PROGRESS_RULES } from './data/progress';
import { RESERVED_VARIABLE_RULES, SECRET_RULES } from './data/variables';
import { GUARDRAIL_RULES } from './guardrails';
import { IMAGE_RULES } from './image';
import { ADAPTER_RULES, BUILTIN_LAYOUT_RULES } from './model/builtin-layout';
import { BUILTIN_ARGUMENT_RULES, BUILTIN_TRAINER_RULES } from './model/builtin-trainer';
import { MODEL_RULES } from './model/model';
import { OBJECTIVE_RULES } from './model/objective';
import { TRAINING_RULES } from './model/training';

/** Topics whose rules check alternatives themselves. */
const ALREADY = ['compute/', 'guardrails/instance-types'];

/**
 * Issues that a run would have if the service chose an alternative instead of the first type: applies the same rules to the run on that
 * alternative. Reports only errors, and only those that are not in `known`, the issues of the first type.
 */
export function checkAlternatives(
  rules: readonly Rule[],
  run: RunSpec,
  context: RuleContext,
  known: readonly Issue[],
): Issue[] {
  const judged = rules.filter((rule) => !ALREADY.some((prefix) => rule.id.startsWith(prefix)));
  const isNew = ({ rule, level, message }: Issue) =>
    level === 'error' && !known.some((other) => other.rule === rule && other.message === message);
  // Values that follow from the first type do not change: a job has one number of processes and one EFA policy.
  const { distribution, network, written } = run;
  const fixed = {
    ...run,
    distribution: { ...distribution, processesPerHostGiven: distribution.processesPerHost },
    written: { ...written, network: { ...written.network, efa: network.efa } },
  };
  return run.compute.alternatives.flatMap((alternative, i) => {
    const other = onAlternative(fixed, alternative);
    return judged.flatMap((rule) =>
      rule
        .check(other, context)
        .filter((found) => isNew(issueOf(rule, found)))
        .map((found) => issueOf(rule, movedTo(i, found))),
    );
  });
}

function movedTo(i: number, found: Finding): Finding {
  const at = `compute.alternatives[${i}]`;
  if (/^compute\.instance(Type|Count)$/.test(found.path)) return { ...found, path: found.path.replace('compute', at) };
  return { ...found, path: `${at}.instanceType`, must: `must suit the rest of the file: ${found.path} ${found.must}` };
}

/** All named rules: those of the strategies, and general ones. */
export const RULES: readonly Rule[] = [
  ...COMPUTE_RULES,
  ...HOST_RULES,
  ...CODE_RULES,
  ...RESERVED_VARIABLE_RULES,
  ...PROGRESS_RULES,
  ...IMAGE_RULES,
  ...LAUNCHER_RULES,
  ...STRATEGIES.flatMap((s) => s.rules),
  ...MODEL_RULES,
  ...TRAINING_RULES,
  ...ADAPTER_RULES,
  ...BUILTIN_TRAINER_RULES,
  ...BUILTIN_ARGUMENT_RULES,
  ...OBJECTIVE_RULES,
  ...BUILTIN_LAYOUT_RULES,
  ...DATA_RULES,
  ...MIXTURE_RULES,
  ...CHECKPOINT_RULES,
  ...LIMIT_RULES,
  ...NETWORK_RULES,
  ...PROCESSING_RULES,
  ...SECRET_RULES,
  ...GUARDRAIL_RULES,
];

const RULE_BY_ID: ReadonlyMap<string, Rule> = new Map(RULES.map((rule) => [rule.id, rule]));

/** All issues of a run at once, with acknowledgements applied. */
export function checkRun(run: RunSpec, context: RuleContext = {}): Issue[] {
  const first = RULES.flatMap((rule) => applyRule(rule, run, context));
  const found = [...first, ...checkAlternatives(RULES, run, context, first)];
  return [...found.map((i) => acknowledged(i, run)), ...acknowledgementIssues(run)];
}

/** An acknowledged error becomes a warning that includes the reason; an acknowledged warning becomes an info. */
function acknowledged(found: Issue, run: RunSpec): Issue {
  const entry = run.acknowledge.find((a) => a.rule === found.rule && a.reason.trim() !== '');
  if (!entry || !RULE_BY_ID.get(found.rule)?.mayAcknowledge) return found;
  const level = found.level === 'error' ? 'warning' : 'info';
  return { ...found, level, message: `${found.message} (acknowledged: ${entry.reason})` };
}

function acknowledgementIssues(run: RunSpec): Issue[] {
  return run.acknowledge.flatMap(({ rule: id, reason }, i) => {
    const refused = (rule: string, option: 'rule' | 'reason', must: string, fix: string) =>
      issue(rule, 'error', `acknowledge[${i}].${option}`, { must, got: option === 'rule' ? id : reason, fix });
    const known = RULE_BY_ID.get(id);
    if (!known) {
      const near = orList(nearest(id, [...RULE_BY_ID.keys()]));
      return [refused('acknowledge/unknown-rule', 'rule', 'must be the id of a rule', `use ${near}`)];
    }
    const fixed = 'must be a judgement rule; errors of the service or of a library cannot be acknowledged';
    return [
      ...(reason.trim() === ''
        ? [refused('acknowledge/reason', 'reason', 'must contain the reason', 'write the reason')]
        : []),
      ...(known.mayAcknowledge ? [] : [refused('acknowledge/not-allowed', 'rule', fixed, 'correct the run instead')]),
    ];
  });
}
