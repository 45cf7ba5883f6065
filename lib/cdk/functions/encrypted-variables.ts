import { CfnResource, type IAspect, Stack } from 'aws-cdk-lib';
import type * as iam from 'aws-cdk-lib/aws-iam';
import type * as kms from 'aws-cdk-lib/aws-kms';
import type * as lambda from 'aws-cdk-lib/aws-lambda';
import type { IConstruct } from 'constructs';
import { allow } from '../access/statement';

/**
 * Encrypts the environment variables of every function with one key, including those of the CDK's provider framework. Lambda decrypts them
 * with the role of the function. Lambda also creates a grant for the role, but the grant is lost when a role is recreated under the same
 * name, so each role has the statement as well. https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars-encryption.html,
 * 2026-11-22.
 */
export class EncryptedVariables implements IAspect {
  private readonly allowed = new Set<IConstruct>();

  constructor(private readonly key: kms.IKey) {}

  visit(node: IConstruct): void {
    if (!CfnResource.isCfnResource(node) || node.cfnResourceType !== 'AWS::Lambda::Function') return;
    const resource = node as lambda.CfnFunction;
    if (resource.kmsKeyArn !== undefined || Stack.of(node).resolve(resource.environment) === undefined) return;
    resource.kmsKeyArn = this.key.keyArn;
    const { role } = node.node.scope as lambda.Function;
    if (!role || this.allowed.has(role)) return;
    this.allowed.add(role);
    allow(role as iam.Role, { sid: 'DecryptVariables', actions: ['kms:Decrypt'], resources: [this.key.keyArn] });
  }
}
