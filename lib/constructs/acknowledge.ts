import { Validations } from 'aws-cdk-lib';
import type { IConstruct } from 'constructs';

/** A finding of cdk-nag that is right in general and not here. */
export interface Acknowledgement {
  readonly id: string;
  readonly reason: string;
}

/**
 * Records why a finding does not count here. An app on an older aws-cdk-lib has no `Validations` (2.240), or one that refuses ids
 * with an ARN in them (2.265): the checks of the environment itself then run in an app on the version that this package is built with.
 */
export function acknowledge(scope: IConstruct, ...findings: Acknowledgement[]): void {
  const validations: typeof Validations | undefined = Validations;
  for (const finding of findings) {
    try {
      validations?.of(scope).acknowledge(finding);
    } catch (error) {
      if (!/Invalid validation rule ID/.test((error as Error).message)) throw error;
    }
  }
}
