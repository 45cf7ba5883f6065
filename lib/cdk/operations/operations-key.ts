import { Duration, RemovalPolicy, Stack } from 'aws-cdk-lib';
import * as iam from 'aws-cdk-lib/aws-iam';
import * as kms from 'aws-cdk-lib/aws-kms';
import { Construct } from 'constructs';

export interface OperationsKeyProps {
  /** Description of the key in the console. */
  readonly description: string;
}

/**
 * Key of resources that exist only as long as the stack: notifications, queues, and the logs and environment variables of the functions
 * that serve runs. Logs that must be readable after the deletion of the stack, or after a deploy that was rolled back, are not encrypted
 * with it. It is separate from the key of the data, which outlives the stack and is used by S3 and DynamoDB with the permissions of their
 * callers: this one is used by services with their own. Costs 1 USD a month.
 */
export class OperationsKey extends Construct {
  /** The key. */
  public readonly key: kms.Key;

  constructor(scope: Construct, id: string, { description }: OperationsKeyProps) {
    super(scope, id);
    this.key = new kms.Key(this, 'Resource', {
      description,
      enableKeyRotation: true,
      removalPolicy: RemovalPolicy.DESTROY,
      pendingWindow: Duration.days(7),
    });
    for (const statement of serviceStatements(Stack.of(this))) this.key.addToResourcePolicy(statement);
  }
}

function serviceStatements({ partition, region, account, urlSuffix }: Stack): iam.PolicyStatement[] {
  const messages = (sid: string, service: string, conditions?: Record<string, unknown>) =>
    new iam.PolicyStatement({
      sid,
      principals: [new iam.ServicePrincipal(service)],
      actions: ['kms:Decrypt', 'kms:GenerateDataKey*'],
      resources: ['*'],
      conditions,
    });
  return [
    messages('AlarmsPublish', 'cloudwatch.amazonaws.com', { StringEquals: { 'aws:SourceAccount': account } }),
    // For encrypted queues and topics, EventBridge sends KMS neither aws:SourceAccount nor aws:SourceArn: with either condition no message
    // would be delivered. The policy of the queue names the rules that may send to it.
    // https://docs.aws.amazon.com/sns/latest/dg/sns-key-management.html, 2026-11-22.
    messages('UndeliveredEvents', 'events.amazonaws.com'),
    new iam.PolicyStatement({
      sid: 'LogGroups',
      // The only principal of these with the domain of its partition, such as amazonaws.com.cn (region-info of the CDK).
      principals: [new iam.ServicePrincipal(`logs.${region}.${urlSuffix}`)],
      // https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/encrypt-log-data-kms.html, 2026-11-22.
      actions: ['kms:Encrypt*', 'kms:Decrypt*', 'kms:ReEncrypt*', 'kms:GenerateDataKey*', 'kms:Describe*'],
      resources: ['*'],
      conditions: {
        ArnLike: { 'kms:EncryptionContext:aws:logs:arn': `arn:${partition}:logs:${region}:${account}:log-group:*` },
      },
    }),
  ];
}
