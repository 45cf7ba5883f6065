import { hasGpus } from '../../config/resolve-run';
import { type Finding, type Rule, when } from '../../config/rule';
import type { RunSpec } from '../../config/run-spec';

const path = 'compute.healthCheck';

function driver({ kind, compute: { healthCheck }, distribution: { contract } }: RunSpec): Finding[] {
  return when(kind === 'processing' || contract !== 'entrypoint', {
    path,
    must: 'must be off when the driver of Slipway does not start the ranks (processing runs, distribution.contract toolkit and container)',
    got: healthCheck,
    fix: 'remove it, or use contract entrypoint',
  });
}

function gpus(run: RunSpec): Finding[] {
  return when(!hasGpus(run), {
    path,
    must: 'must be off on hosts without GPUs: there is nothing to check',
    got: run.compute.healthCheck,
    fix: 'remove it',
  });
}

const RULES: readonly Rule[] = [
  { id: 'compute/health-check', level: 'error', check: driver },
  { id: 'compute/health-check-gpus', level: 'warning', check: gpus },
];

/** The rules apply only to runs that set the health check explicitly and do not disable it. */
export const HEALTH_CHECK_RULES: readonly Rule[] = RULES.map((rule) => ({
  ...rule,
  check: (run, context) => ((run.compute.healthCheck ?? 'off') === 'off' ? [] : rule.check(run, context)),
}));
