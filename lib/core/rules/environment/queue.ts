import { when } from '../rule';
import type { EnvironmentRule } from './environment-rule';

const backend: EnvironmentRule = {
  id: 'environment/queue-backend',
  level: 'error',
  what: 'The queue is the built-in queue of Slipway.',
  why: 'AWS Batch creates training jobs with its own service-linked role, to which the guardrails do not apply.',
  source: 'docs/decisions/0008-aws-batch.md',
  reads: ['queue'],
  check: ({ queue }) =>
    when(queue.backend === 'batch', {
      path: 'queue.backend',
      must: 'must be slipway: AWS Batch would create jobs with a role without guardrails',
      got: queue.backend,
      fix: 'remove it; docs/decisions/0008-aws-batch.md has the reasons and requirements',
    }),
};

/** Rules for the queue. */
export const QUEUE_RULES: readonly EnvironmentRule[] = [backend];
