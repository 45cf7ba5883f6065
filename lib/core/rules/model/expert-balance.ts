import { type Finding, type Rule, rule, trainingRule, when } from '../../config/rule';
import type { RunSpec } from '../../config/run-spec';
import { fsdpDegrees } from '../../distribution/fsdp';

const LOSSES = ['balance-loss', 'router-z-loss'] as const;
const BIAS = 'routing-bias-rate';

/** Configurations that the trainer's limits.py rejects; test/core/rules/trainer-layout.test.ts compares both. */
function balanceFindings(run: RunSpec): Finding[] {
  const { library, parameters } = run.distribution;
  const shape = run.model?.architecture;
  const { context } = fsdpDegrees(run);
  const refusals = (name: string): [isWrong: boolean, must: string][] => {
    const hasExperts = shape?.experts !== undefined;
    return [
      [shape !== undefined && !hasExperts, 'must be 0 for a model without experts'],
      [!['fsdp', 'ddp'].includes(library), `must be 0 with ${library}`],
      [hasExperts && parameters.compile === true, 'must be 0 with compile'],
      [name !== BIAS && context > 1, 'must be 0 with context parallelism'],
      [name === BIAS && hasExperts && shape?.routing?.bias !== true, 'must be 0 for a model without routing.bias'],
      [name === BIAS && run.training.lora !== undefined, 'must be 0 with lora'],
    ];
  };
  return [...LOSSES, BIAS].flatMap((name) => {
    const got = run.code.arguments[name];
    const path = `code.arguments.${name}`;
    const wrong = Number(got ?? 0) > 0 ? refusals(name).filter(([isWrong]) => isWrong) : [];
    return wrong.map(([, must]) => ({ path, must, fix: 'remove it' }));
  });
}

/** Rules for balancing the experts of a mixture. */
export const EXPERT_BALANCE_RULES: readonly Rule[] = [
  rule('training/expert-balance', 'error', (run) => (run.code.builtin === 'builtin' ? balanceFindings(run) : [])),
  rule('training/balance-loss-over', 'warning', ({ code }) => {
    const over = code.arguments['balance-loss-over'];
    const isAlone = code.builtin === 'builtin' && over !== undefined && !code.arguments['balance-loss'];
    return when(isAlone, 'code.arguments.balance-loss-over', {
      must: 'must be used with balance-loss',
      fix: 'add balance-loss, or remove it',
    });
  }),
].map(trainingRule);
