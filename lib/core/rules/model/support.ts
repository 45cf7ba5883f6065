import type { Issue } from '../../config/issue';
import { type Finding, type Rule, rule, trainingRule, when } from '../../config/rule';
import type { RunSpec } from '../../config/run-spec';

/**
 * Features that the contract defines and this version does not support yet. `validate` warns, so that a file can be checked before its
 * feature exists; a launch is rejected (`refuseUnsupported`), because the job would end with code 77 after its instances have started.
 */
const PREFIX = 'not-supported/';

const notYet = (path: string, what: string, got: unknown, fix: string): Finding => ({
  path,
  must: `${what} is not supported yet`,
  got,
  fix,
});

const LIBRARIES = ['fsdp', 'ddp', 'smp-v2', 'deepspeed'];
const OWN_CODE = 'use fsdp, or custom code (containers/examples)';

function trainerPrecision({ training: { precision }, distribution: { library } }: RunSpec): Finding[] {
  return when(
    precision === 'fp16' || (precision === 'fp8' && library !== 'fsdp'),
    notYet('training.precision', `${precision} in the built-in trainer`, precision, 'use bf16'),
  );
}

/** Rules for what the built-in trainer can train. */
export const SUPPORT_RULES: readonly Rule[] = [
  rule(`${PREFIX}trainer`, 'warning', (run) => {
    if (run.code.builtin !== 'builtin') return [];
    const { library, collectives } = run.distribution;
    return [
      ...when(
        !LIBRARIES.includes(library),
        notYet('distribution.library', `${library} in the built-in trainer`, library, OWN_CODE),
      ),
      ...when(
        collectives === 'smddp' && library === 'ddp',
        notYet('distribution.collectives', 'smddp with ddp in the built-in trainer', collectives, OWN_CODE),
      ),
      ...trainerPrecision(run),
    ];
  }),
].map(trainingRule);

/** The issues for a launch: features that are not supported yet are errors. */
export function refuseUnsupported(issues: readonly Issue[]): Issue[] {
  return issues.map((found) => (found.rule.startsWith(PREFIX) ? { ...found, level: 'error' } : found));
}
