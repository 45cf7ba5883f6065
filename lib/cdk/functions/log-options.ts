import { CfnResource, type IAspect } from 'aws-cdk-lib';
import type { IConstruct } from 'constructs';

/** Encryption and retention of the log groups in a scope. */
export interface LogOptions {
  /** Whether log groups keep the key that their construct has set. */
  readonly kms: boolean;
  /** Retention in days, one of the values that CloudWatch Logs accepts. */
  readonly retentionDays: number;
}

/** Encryption and retention of every log group in a scope. */
export class ApplyLogOptions implements IAspect {
  constructor(private readonly options: LogOptions) {}

  visit(node: IConstruct): void {
    if (!CfnResource.isCfnResource(node) || node.cfnResourceType !== 'AWS::Logs::LogGroup') return;
    node.addPropertyOverride('RetentionInDays', this.options.retentionDays);
    if (!this.options.kms) node.addPropertyDeletionOverride('KmsKeyId');
  }
}
