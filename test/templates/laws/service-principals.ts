// Every service that a template makes act in its own name is allowed to, by the policy of what it acts on.

import { evaluate, type Request, type Statement } from '../support/policy';
import { arnOf, PINNED, type Resources, resolveValue } from '../support/values';

/** One thing that a service must be able to do. */
export interface Need extends Request {
  /** The two ends, for the message. */
  why: string;
  /** Logical id of the resource whose policy answers. */
  target: string;
}

const { account, region } = PINNED;
const of = (resources: Resources, type: string) => Object.entries(resources).filter(([, r]) => r.Type === type);
type Properties = Record<string, unknown>;
const listOf = (value: unknown): Properties[] => (value as Properties[] | undefined) ?? [];

/** Everything that the template connects to a service principal. */
export function serviceNeeds(resources: Resources): Need[] {
  return [alarmNeeds, ruleNeeds, budgetNeeds, bucketNeeds, subscriptionNeeds, logGroupNeeds].flatMap((needs) =>
    needs(resources),
  );
}

/** Needs that no policy of the template allows, as sentences. */
export function unmetServiceNeeds(resources: Resources): string[] {
  return serviceNeeds(resources)
    .filter((need) => evaluate(policyOf(resources, need.target), need) !== 'Allow')
    .map((need) => `${need.why}: ${need.principal?.service} may not ${need.action} on ${need.target}`);
}

/** Resource-based policy of a topic, queue, bucket, key or function: its statements with references filled in. */
function policyOf(resources: Resources, id: string): Statement[] {
  const target = resources[id];
  if (target?.Type === 'AWS::KMS::Key') return statementsIn(resources, target.Properties.KeyPolicy);
  if (target?.Type === 'AWS::Lambda::Function') return permissionsOf(resources, arnOf(resources, id) ?? '');
  const names: Record<string, string> = {
    'AWS::SNS::TopicPolicy': 'Topics',
    'AWS::SQS::QueuePolicy': 'Queues',
    'AWS::S3::BucketPolicy': 'Bucket',
  };
  return Object.values(resources).flatMap((resource) => {
    const name = names[resource.Type];
    const attached = name ? JSON.stringify(resource.Properties[name]) : '';
    return attached.includes(`"${id}"`) ? statementsIn(resources, resource.Properties.PolicyDocument) : [];
  });
}

function permissionsOf(resources: Resources, functionArn: string): Statement[] {
  return of(resources, 'AWS::Lambda::Permission').flatMap(([, { Properties }]) => {
    const given = resolveValue(resources, Properties) as Record<string, string>;
    if (given.FunctionName !== functionArn) return [];
    return [
      {
        Effect: 'Allow' as const,
        Principal: { Service: given.Principal },
        Action: given.Action,
        Resource: functionArn,
        ...(given.SourceArn && { Condition: { ArnLike: { 'aws:SourceArn': given.SourceArn } } }),
      },
    ];
  });
}

const statementsIn = (resources: Resources, document: unknown) =>
  (resolveValue(resources, document) as { Statement: Statement[] }).Statement;

/** Logical id of the resource with this ARN, or undefined when it is not in the template. */
const idOfArn = (resources: Resources, arn: unknown) =>
  Object.keys(resources).find((id) => arnOf(resources, id) === arn);

/** A message to a topic or queue, and the use of its key when it has one. */
function message(resources: Resources, why: string, service: string, target: string, context: Need['context']): Need[] {
  const { Type, Properties } = resources[target] ?? { Type: '', Properties: {} };
  const resource = arnOf(resources, target) ?? '';
  const isTopic = Type === 'AWS::SNS::Topic';
  const principal = { service };
  const send = {
    why,
    target,
    principal,
    action: isTopic ? 'sns:Publish' : 'sqs:SendMessage',
    resource,
    context: { ...context, 'aws:SecureTransport': 'true' },
  };
  const keyArn = resolveValue(resources, Properties[isTopic ? 'KmsMasterKeyId' : 'KmsMasterKeyId']);
  if (keyArn === undefined) return [send];
  const key = idOfArn(resources, keyArn) ?? String(keyArn);
  // EventBridge sends no source keys to KMS; the other services do.
  // https://docs.aws.amazon.com/sns/latest/dg/sns-key-management.html, 2026-11-22.
  const source = service === 'events.amazonaws.com' ? {} : context;
  const encryption = { [`kms:EncryptionContext:${isTopic ? 'aws:sns:topicArn' : 'aws:sqs:arn'}`]: resource };
  const use = ['kms:Decrypt', 'kms:GenerateDataKey'].map((action) => ({
    why,
    target: key,
    principal,
    action,
    resource: String(keyArn),
    context: { ...source, ...encryption },
  }));
  return [send, ...use];
}

const sourceOf = (arn: string | undefined) => ({ 'aws:SourceArn': arn ?? '', 'aws:SourceAccount': account });

function alarmNeeds(resources: Resources): Need[] {
  return of(resources, 'AWS::CloudWatch::Alarm').flatMap(([id, { Properties }]) =>
    ['AlarmActions', 'OKActions', 'InsufficientDataActions'].flatMap((kind) =>
      (resolveValue(resources, Properties[kind] ?? []) as string[]).flatMap((action) => {
        const target = idOfArn(resources, action);
        const source = sourceOf(arnOf(resources, id));
        return target ? message(resources, `${kind} of ${id}`, 'cloudwatch.amazonaws.com', target, source) : [];
      }),
    ),
  );
}

function ruleNeeds(resources: Resources): Need[] {
  const service = 'events.amazonaws.com';
  return of(resources, 'AWS::Events::Rule').flatMap(([id, { Properties }]) =>
    listOf(Properties.Targets).flatMap((target) => {
      const context = sourceOf(arnOf(resources, id));
      const letters = (target.DeadLetterConfig as { Arn?: unknown } | undefined)?.Arn;
      return [target.Arn, letters].flatMap((arn): Need[] => {
        const to = idOfArn(resources, resolveValue(resources, arn));
        if (!to) return [];
        const why = `target of rule ${id}`;
        if (resources[to]?.Type !== 'AWS::Lambda::Function') return message(resources, why, service, to, context);
        const resource = arnOf(resources, to) ?? '';
        return [{ why, target: to, principal: { service }, action: 'lambda:InvokeFunction', resource, context }];
      });
    }),
  );
}

function budgetNeeds(resources: Resources): Need[] {
  return of(resources, 'AWS::Budgets::Budget').flatMap(([id, { Properties }]) =>
    listOf(Properties.NotificationsWithSubscribers).flatMap(({ Subscribers }) =>
      listOf(Subscribers).flatMap(({ SubscriptionType, Address }) => {
        const target = SubscriptionType === 'SNS' ? idOfArn(resources, resolveValue(resources, Address)) : undefined;
        const source = sourceOf(`arn:aws:budgets::${account}:budget/${id}`);
        return target ? message(resources, `subscriber of ${id}`, 'budgets.amazonaws.com', target, source) : [];
      }),
    ),
  );
}

function bucketNeeds(resources: Resources): Need[] {
  return of(resources, 'AWS::S3::Bucket').flatMap(([id, { Properties }]) => {
    const context = sourceOf(arnOf(resources, id));
    const logging = Properties.LoggingConfiguration as {
      DestinationBucketName?: { Ref?: string };
      LogFilePrefix?: string;
    };
    const target = logging?.DestinationBucketName?.Ref;
    const delivery: Need[] = target
      ? [
          {
            why: `access log of ${id}`,
            target,
            principal: { service: 'logging.s3.amazonaws.com' },
            action: 's3:PutObject',
            resource: `${arnOf(resources, target)}/${logging.LogFilePrefix ?? ''}2026-11-22-00-00-00-0`,
            context: { ...context, 'aws:SecureTransport': 'true', 's3:TlsVersion': '1.3' },
          },
        ]
      : [];
    const notified = listOf((Properties.NotificationConfiguration as Properties | undefined)?.QueueConfigurations);
    return [
      ...delivery,
      ...notified.flatMap(({ Queue }) => {
        const queue = idOfArn(resources, resolveValue(resources, Queue));
        return queue ? message(resources, `events of ${id}`, 's3.amazonaws.com', queue, context) : [];
      }),
    ];
  });
}

function subscriptionNeeds(resources: Resources): Need[] {
  return of(resources, 'AWS::SNS::Subscription').flatMap(([id, { Properties }]) => {
    const target = idOfArn(resources, resolveValue(resources, Properties.Endpoint));
    if (!target) return [];
    const context = sourceOf(String(resolveValue(resources, Properties.TopicArn)));
    if (resources[target]?.Type !== 'AWS::Lambda::Function')
      return message(resources, id, 'sns.amazonaws.com', target, context);
    const resource = arnOf(resources, target) ?? '';
    return [
      {
        why: id,
        target,
        principal: { service: 'sns.amazonaws.com' },
        action: 'lambda:InvokeFunction',
        resource,
        context,
      },
    ];
  });
}

/** CloudWatch Logs encrypts with the key itself: https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/encrypt-log-data-kms.html, 2026-11-22. */
function logGroupNeeds(resources: Resources): Need[] {
  return of(resources, 'AWS::Logs::LogGroup').flatMap(([id, { Properties }]) => {
    if (Properties.KmsKeyId === undefined) return [];
    const keyArn = String(resolveValue(resources, Properties.KmsKeyId));
    const group = (arnOf(resources, id) ?? '').replace(/:\*$/, '');
    return [
      'kms:Encrypt',
      'kms:Decrypt',
      'kms:ReEncryptFrom',
      'kms:ReEncryptTo',
      'kms:GenerateDataKey',
      'kms:DescribeKey',
    ].map((action) => ({
      why: `log group ${id}`,
      target: idOfArn(resources, keyArn) ?? keyArn,
      principal: { service: `logs.${region}.amazonaws.com` },
      action,
      resource: keyArn,
      context: { 'kms:EncryptionContext:aws:logs:arn': group },
    }));
  });
}
