import type { Issue } from '../config/issue';
import { type Finding, issueOf, type Rule, type RuleContext } from '../config/rule';
import type { RunSpec } from '../config/run-spec';

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
  return run.compute.alternatives.flatMap((_alternative, i) => {
    const other = onAlternative(run, i);
    return judged.flatMap((rule) =>
      rule
        .check(other, context)
        .filter((found) => isNew(issueOf(rule, found)))
        .map((found) => issueOf(rule, movedTo(i, found))),
    );
  });
}

/**
 * The run on its alternative `i`. Values that follow from the first type do not change: a job has one number of processes and one EFA
 * policy.
 */
function onAlternative(run: RunSpec, i: number): RunSpec {
  const { compute, distribution, network, written } = run;
  const { instanceType = '', instanceCount = compute.instanceCount } = compute.alternatives[i] ?? {};
  return {
    ...run,
    compute: { ...compute, instanceType, instanceCount, alternatives: [] },
    distribution: { ...distribution, processesPerHostGiven: distribution.processesPerHost },
    written: { ...written, network: { ...written.network, efa: network.efa } },
  };
}

function movedTo(i: number, found: Finding): Finding {
  const at = `compute.alternatives[${i}]`;
  if (/^compute\.instance(Type|Count)$/.test(found.path)) return { ...found, path: found.path.replace('compute', at) };
  return { ...found, path: `${at}.instanceType`, must: `must suit the rest of the file: ${found.path} ${found.must}` };
}
