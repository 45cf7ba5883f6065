/**
 * The embedded AWS for tests (`slipway/testing`): SageMaker training and processing jobs that really run, Service Quotas that
 * are enforced, and faults on demand, in addition to MiniStack's CloudFormation, S3, IAM, Lambda, DynamoDB, EventBridge and Logs.
 *
 * ```ts
 * const sandbox = await startSandbox({ stateDir: folder });
 * const admin = adminOf(sandbox);
 * await admin.fault({ kind: 'instance-killed', jobName: 'demo-*', host: 2, step: 40 });
 * ```
 */

import { setTimeout as sleep } from 'node:timers/promises';
import type { Sandbox } from './sandbox';
import { SandboxAdmin } from './sandbox-admin';

export type { FaultSpec } from './faults/fault';

export type { FaultEntry } from './faults/fault-plan';
export { DEFAULT_TIME_SCALE, type TimeScale } from './jobs/job-run';
export { type Sandbox, type SandboxOptions, startSandbox } from './sandbox';
export { SandboxAdmin } from './sandbox-admin';

/** The admin client of a running sandbox. */
export function adminOf(sandbox: Pick<Sandbox, 'endpoints' | 'env'>): SandboxAdmin {
  return new SandboxAdmin(sandbox.endpoints.sagemaker, sandbox.env.AWS_CA_BUNDLE);
}

/** How long and how often a condition is polled. */
interface ConditionOptions {
  /** @default 30 */
  timeoutSeconds?: number;
  /** @default 0.1 */
  intervalSeconds?: number;
  /** Description of the condition, for the error. @default the condition */
  what?: string;
}

/**
 * Polls until the result is neither undefined, null nor false.
 * @throws Error after the timeout
 */
export async function eventually<T>(
  ask: () => Promise<T | undefined | null | false> | T | undefined | null | false,
  { timeoutSeconds = 30, intervalSeconds = 0.1, what = 'the condition' }: ConditionOptions = {},
): Promise<T> {
  const deadline = Date.now() + timeoutSeconds * 1000;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined && answer !== null && answer !== false) return answer;
    if (Date.now() > deadline) throw new Error(`${what} must hold within ${timeoutSeconds} s`);
    await sleep(intervalSeconds * 1000);
  }
}
