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
import type { Sandbox } from './sandbox';
import { SandboxAdmin } from './sandbox-admin';

export { type ConditionOptions, eventually } from './eventually';
export type { FaultSpec } from './faults/fault';
export type { FaultEntry } from './faults/fault-plan';
export { type Sandbox, type SandboxOptions, startSandbox } from './sandbox';
export { SandboxAdmin } from './sandbox-admin';
export { DEFAULT_TIME_SCALE, type TimeScale } from './time-scale';

/** The admin client of a running sandbox. */
export function adminOf(sandbox: Pick<Sandbox, 'endpoints' | 'env'>): SandboxAdmin {
  return new SandboxAdmin(sandbox.endpoints.sagemaker, sandbox.env.AWS_CA_BUNDLE);
}
