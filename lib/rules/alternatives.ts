import type { Issue } from '../spec/issue';
import { applyRule, type Finding, type Rule, type RuleContext } from '../spec/rule';
import type { RunSpec } from '../spec/run-spec';

/** Topics whose rules look at alternatives themselves. */
const ALREADY = ['compute/', 'guardrails/instance-types'];

/**
 * What would be wrong if the service took an alternative instead of the first type: the same rules over the run as it would be then.
 * Only errors are said, and only those that the first type does not have too.
 */
export function checkAlternatives(rules: readonly Rule[], run: RunSpec, context: RuleContext): Issue[] {
  const judged = rules.filter((rule) => !ALREADY.some((prefix) => rule.id.startsWith(prefix)));
  return run.compute.alternatives.flatMap((_alternative, i) => {
    const other = onAlternative(run, i);
    return judged.flatMap((rule) => {
      const first = new Set(applyRule(rule, run, context).map((found) => found.message));
      const isNew = (found: Finding) =>
        applyRule({ ...rule, check: () => [found] }, other, context).every(
          ({ level, message }) => level === 'error' && !first.has(message),
        );
      const moved = (): Finding[] =>
        rule
          .check(other, context)
          .filter(isNew)
          .map((found) => movedTo(i, found));
      return applyRule({ ...rule, check: moved }, other, context);
    });
  });
}

/** The run on its alternative `i`. What the first type decided stays: one job has one number of processes and one EFA policy. */
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
