import { Stack } from 'aws-cdk-lib';
import * as iam from 'aws-cdk-lib/aws-iam';
import type * as kms from 'aws-cdk-lib/aws-kms';
import * as sns from 'aws-cdk-lib/aws-sns';
import { EmailSubscription } from 'aws-cdk-lib/aws-sns-subscriptions';
import type { Construct } from 'constructs';
import type { Notifications } from '../../spec/environment-file';

/** Who reads a topic and with which key it is encrypted. */
export interface NotificationTopicOptions {
  readonly environment: string;
  readonly key: kms.IKey;
  /** Addresses that get the notices of every run, and alarms. */
  readonly emails: readonly string[];
  /** Who gets the notices of one team's runs, by team. */
  readonly teams: Readonly<Record<string, Notifications>>;
}

/** Topic of notices and alarms, with its subscriptions by mail. */
export function notificationTopic(scope: Construct, id: string, options: NotificationTopicOptions): sns.Topic {
  const { environment, key, emails } = options;
  const topic = new sns.Topic(scope, id, { displayName: `Slipway ${environment}`, masterKey: key, enforceSSL: true });
  for (const email of emails) topic.addSubscription(new EmailSubscription(email));
  for (const [email, allowlist] of teamsByAddress(options)) {
    const filterPolicy = { team: sns.SubscriptionFilter.stringFilter({ allowlist }) };
    topic.addSubscription(new EmailSubscription(email, { filterPolicy }));
  }
  const { partition, region, account } = Stack.of(scope);
  // A topic with any policy of its own loses the default one, which lets services of the account publish.
  topic.addToResourcePolicy(
    new iam.PolicyStatement({
      sid: 'Alarms',
      principals: [new iam.ServicePrincipal('cloudwatch.amazonaws.com')],
      actions: ['sns:Publish'],
      resources: [topic.topicArn],
      conditions: { ArnLike: { 'aws:SourceArn': `arn:${partition}:cloudwatch:${region}:${account}:alarm:*` } },
    }),
  );
  return topic;
}

/** Teams by the address that gets the notices of their runs; one that the environment names gets all of them already. */
function teamsByAddress({ emails: all, teams }: NotificationTopicOptions): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const [team, { emails }] of Object.entries(teams))
    for (const email of emails) if (!all.includes(email)) found.set(email, [...(found.get(email) ?? []), team]);
  return found;
}
