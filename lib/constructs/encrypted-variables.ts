import { CfnResource, type IAspect } from 'aws-cdk-lib';
import type * as kms from 'aws-cdk-lib/aws-kms';
import type { CfnFunction } from 'aws-cdk-lib/aws-lambda';
import type { IConstruct } from 'constructs';

/**
 * Encrypts the variables of every function with one key, those of the CDK's provider framework too. Lambda itself creates the grant
 * with which a function reads them, so roles need no statement.
 * https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars-encryption.html, 2026-11-22.
 */
export class EncryptedVariables implements IAspect {
  constructor(private readonly key: kms.IKey) {}

  visit(node: IConstruct): void {
    if (!CfnResource.isCfnResource(node) || node.cfnResourceType !== 'AWS::Lambda::Function') return;
    const made = node as CfnFunction;
    if (made.environment !== undefined) made.kmsKeyArn ??= this.key.keyArn;
  }
}
