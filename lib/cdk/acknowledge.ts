import { Validations } from 'aws-cdk-lib';
import type { IConstruct } from 'constructs';

/** A finding of cdk-nag that is correct in general but does not apply here. */
export interface Acknowledgement {
  readonly id: string;
  readonly reason: string;
}

/**
 * Records why a finding does not apply here. An app with an older aws-cdk-lib has no `Validations` (before 2.240), or one that rejects ids
 * that contain an ARN (before 2.265): there, the checks of the environment itself run in an app with the version that this package is built
 * with.
 */
export function acknowledge(scope: IConstruct, ...findings: Acknowledgement[]): void {
  const validations: typeof Validations | undefined = Validations;
  const { stackTraceLimit } = Error;
  // The CDK notes the call stack of each acknowledgement, which takes a quarter of the time of making the whole stack.
  Error.stackTraceLimit = 0;
  try {
    for (const finding of findings) acknowledgeOne(validations?.of(scope), finding);
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

function acknowledgeOne(validations: Validations | undefined, finding: Acknowledgement): void {
  try {
    validations?.acknowledge(finding);
  } catch (error) {
    if (!/Invalid validation rule ID/.test((error as Error).message)) throw error;
  }
}
