import { CfnResource, CustomResourceProviderBase, Duration, type IAspect, Stack } from 'aws-cdk-lib';
import type * as iam from 'aws-cdk-lib/aws-iam';
import type * as kms from 'aws-cdk-lib/aws-kms';
import type * as lambda from 'aws-cdk-lib/aws-lambda';
import * as sqs from 'aws-cdk-lib/aws-sqs';
import { Construct, type IConstruct } from 'constructs';
import { allow, type ExactStatement } from '../access/statement';
import { acknowledge } from '../acknowledged-checks';

export interface FailedInvocationsProps {
  /** Key of the queue. */
  readonly encryptionKey: kms.IKey;
}

/**
 * Dead-letter queue of every function that has none of its own. CloudFormation calls custom resources asynchronously: an event that a
 * function could not start to process (no permission, no available concurrency, a crash in each of three tries) is kept here with its
 * error, while the deploy waits for its timeout. https://docs.aws.amazon.com/lambda/latest/dg/services-cloudformation.html and
 * https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html, 2026-11-22.
 */
export class FailedInvocations extends Construct implements IAspect {
  /** Events that failed in all three tries. */
  public readonly queue: sqs.Queue;
  private readonly key: kms.IKey;
  private readonly allowed = new Set<IConstruct>();

  constructor(scope: Construct, id: string, { encryptionKey }: FailedInvocationsProps) {
    super(scope, id);
    this.key = encryptionKey;
    this.queue = new sqs.Queue(this, 'Queue', {
      encryption: sqs.QueueEncryption.KMS,
      encryptionMasterKey: encryptionKey,
      enforceSSL: true,
      retentionPeriod: Duration.days(14),
    });
    acknowledge(this.queue, { id: 'AwsSolutions-SQS3', reason: 'It is the dead-letter queue of functions.' });
  }

  /** Sets the queue for one function, and adds to its role the permissions for sending to it. */
  visit(node: IConstruct): void {
    if (!CfnResource.isCfnResource(node) || node.cfnResourceType !== 'AWS::Lambda::Function') return;
    const { scope } = node.node;
    if (scope instanceof CustomResourceProviderBase) {
      node.addPropertyOverride('DeadLetterConfig', { TargetArn: this.queue.queueArn });
      for (const statement of this.statements(new Set())) scope.addToRolePolicy(inTemplate(statement));
      return;
    }
    const resource = node as lambda.CfnFunction;
    if (resource.deadLetterConfig !== undefined) return;
    resource.deadLetterConfig = { targetArn: this.queue.queueArn };
    const { role } = scope as lambda.Function;
    if (!role || this.allowed.has(role)) return;
    this.allowed.add(role);
    allow(role as iam.Role, ...this.statements(actionsOn(role as iam.Role, this.key)));
  }

  /**
   * Lambda sends with the role of the function, and checks its permission when the function is created. `had`: actions that the role
   * already has on the key.
   */
  private statements(had: ReadonlySet<string>): ExactStatement[] {
    const actions = ['kms:GenerateDataKey', 'kms:Decrypt'].filter((action) => !had.has(action));
    return [
      { sid: 'KeepFailedEvents', actions: ['sqs:SendMessage'], resources: [this.queue.queueArn] },
      ...(actions.length > 0 ? [{ sid: 'EncryptFailedEvents', actions, resources: [this.key.keyArn] }] : []),
    ];
  }
}

/** In the form in which the roles of the CDK's own small functions accept a statement. */
const inTemplate = ({ sid, actions, resources }: ExactStatement) => ({
  Sid: sid,
  Effect: 'Allow',
  Action: actions,
  Resource: resources,
});

/** Actions that a role's own policy already allows on a key. */
function actionsOn(role: iam.Role, key: kms.IKey): Set<string> {
  const stack = Stack.of(role);
  const policy = role.node.tryFindChild('DefaultPolicy') as iam.Policy | undefined;
  const resolved = stack.resolve(policy?.document) as { Statement?: Record<string, unknown>[] } | undefined;
  const arn = JSON.stringify(stack.resolve(key.keyArn));
  const statements = (resolved?.Statement ?? []).filter(
    ({ Resource, Condition }) =>
      Condition === undefined && [Resource].flat().some((one) => JSON.stringify(one) === arn),
  );
  return new Set(statements.flatMap(({ Action }) => [Action].flat() as string[]));
}
