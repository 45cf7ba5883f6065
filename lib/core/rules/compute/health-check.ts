import { hasGpus } from '../../config/resolve-run';
import { type Rule, rule, ruleWhere, when } from '../../config/rule';

const path = 'compute.healthCheck';

/** The rules apply only to runs that set the health check explicitly and do not disable it. */
export const HEALTH_CHECK_RULES: readonly Rule[] = [
  rule('compute/health-check', 'error', ({ kind, distribution: { contract } }) =>
    when(kind === 'processing' || contract !== 'entrypoint', path, {
      must: 'must be off when the driver of Slipway does not start the ranks (processing runs, distribution.contract toolkit and container)',
      fix: 'remove it, or use contract entrypoint',
    }),
  ),
  rule('compute/health-check-gpus', 'warning', (run) =>
    when(!hasGpus(run), path, {
      must: 'must be off on hosts without GPUs: there is nothing to check',
      fix: 'remove it',
    }),
  ),
].map(ruleWhere(({ compute }) => (compute.healthCheck ?? 'off') !== 'off'));
