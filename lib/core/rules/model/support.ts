import type { Issue } from '../../config/issue';
import { type Rule, rule, trainingRule, when } from '../../config/rule';

/**
 * Features that the contract defines and this version does not support yet. `validate` warns, so that a file can be checked before its
 * feature exists; a launch is rejected (`refuseUnsupported`), because the job would end with code 77 after its instances have started.
 */
const PREFIX = 'not-supported/';

const LIBRARIES = ['fsdp', 'ddp', 'smp-v2', 'deepspeed'];
const OWN_CODE = 'use fsdp, or custom code (containers/examples)';

/** Rules for what the built-in trainer can train. */
export const SUPPORT_RULES: readonly Rule[] = [
  rule(`${PREFIX}trainer`, 'warning', ({ code, distribution: { library, collectives }, training: { precision } }) => {
    if (code.builtin !== 'builtin') return [];
    const notYet = (isWrong: boolean, path: string, what: string, fix: string) =>
      when(isWrong, path, { must: `${what} in the built-in trainer is not supported yet`, fix });
    const isSmddp = collectives === 'smddp' && library === 'ddp';
    const isNoPrecision = precision === 'fp16' || (precision === 'fp8' && library !== 'fsdp');
    return [
      ...notYet(!LIBRARIES.includes(library), 'distribution.library', library, OWN_CODE),
      ...notYet(isSmddp, 'distribution.collectives', 'smddp with ddp', OWN_CODE),
      ...notYet(isNoPrecision, 'training.precision', precision, 'use bf16'),
    ];
  }),
].map(trainingRule);

/** The issues for a launch: features that are not supported yet are errors. */
export function refuseUnsupported(issues: readonly Issue[]): Issue[] {
  return issues.map((found) => (found.rule.startsWith(PREFIX) ? { ...found, level: 'error' } : found));
}
