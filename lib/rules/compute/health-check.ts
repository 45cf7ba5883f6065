import { hasGpus } from '../../spec/resolve-run';
import type { RunSpec } from '../../spec/run-spec';
import { type Finding, type Rule, when } from '../rule';

const path = 'compute.healthCheck';

function driver({ kind, compute: { healthCheck }, distribution: { contract } }: RunSpec): Finding[] {
  return when(kind === 'processing' || contract !== 'entrypoint', {
    path,
    must: 'must be off where our driver does not start the ranks (processing runs, distribution.contract toolkit and container)',
    got: healthCheck,
    fix: 'remove it, or use contract entrypoint',
  });
}

function gpus(run: RunSpec): Finding[] {
  return when(!hasGpus(run), {
    path,
    must: 'must be off on hosts without GPUs: there is nothing to examine',
    got: run.compute.healthCheck,
    fix: 'remove it',
  });
}

const RULES: readonly Rule[] = [
  {
    id: 'compute/health-check',
    level: 'error',
    what: 'A health check before training is made by our driver.',
    why: 'Under another contract the file would promise an examination that nobody makes.',
    source: 'docs/health-check.md',
    check: driver,
  },
  {
    id: 'compute/health-check-gpus',
    level: 'warning',
    what: 'A health check before training examines GPUs.',
    why: 'Other hosts are started without one, whatever the file says.',
    source: 'docs/health-check.md',
    check: gpus,
  },
];

/** Rules say nothing of a run that leaves the check to its default, or turns it off. */
export const HEALTH_CHECK_RULES: readonly Rule[] = RULES.map((rule) => ({
  ...rule,
  check: (run, context) => ((run.compute.healthCheck ?? 'off') === 'off' ? [] : rule.check(run, context)),
}));
