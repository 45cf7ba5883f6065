import { existsSync, readFileSync } from 'node:fs';

/** The default qualifier of the CDK: https://docs.aws.amazon.com/cdk/v2/guide/bootstrapping-env.html, 2026-11-22. */
export const DEFAULT_QUALIFIER = 'hnb659fds';
const CONTEXT = '@aws-cdk/core:bootstrapQualifier';

/** The qualifier of the bootstrap stack that the app in this folder uses. */
export function bootstrapQualifier(): string {
  if (!existsSync('cdk.json')) return DEFAULT_QUALIFIER;
  const { context } = JSON.parse(readFileSync('cdk.json', 'utf8')) as { context?: Record<string, unknown> };
  const own = context?.[CONTEXT];
  return typeof own === 'string' && own !== '' ? own : DEFAULT_QUALIFIER;
}
