import { Stack } from 'aws-cdk-lib';
import * as iam from 'aws-cdk-lib/aws-iam';
import type * as kms from 'aws-cdk-lib/aws-kms';
import * as sns from 'aws-cdk-lib/aws-sns';
import { EmailSubscription } from 'aws-cdk-lib/aws-sns-subscriptions';
import type { Construct } from 'constructs';
import { arnOf } from '../../core/contracts/names';

import type { TrainingLauncherProps } from '../launcher/training-launcher';

/** Topic of notices and alarms, with its e-mail subscriptions. */
export function notificationTopic(scope: Construct, masterKey: kms.IKey, props: TrainingLauncherProps): sns.Topic {
  const displayName = `Slipway ${props.environment}`;
  const topic = new sns.Topic(scope, 'Notifications', { displayName, masterKey, enforceSSL: true });
  for (const email of props.notificationEmails ?? []) topic.addSubscription(new EmailSubscription(email));
  for (const [email, allowlist] of teamsByAddress(props)) {
    const filterPolicy = { team: sns.SubscriptionFilter.stringFilter({ allowlist }) };
    topic.addSubscription(new EmailSubscription(email, { filterPolicy }));
  }
  // A topic with a policy of its own does not have the default policy, which allows services of the account to publish.
  topic.addToResourcePolicy(
    new iam.PolicyStatement({
      sid: 'Alarms',
      principals: [new iam.ServicePrincipal('cloudwatch.amazonaws.com')],
      actions: ['sns:Publish'],
      resources: [topic.topicArn],
      conditions: { ArnLike: { 'aws:SourceArn': arnOf(Stack.of(scope), 'cloudwatch', 'alarm:*') } },
    }),
  );
  return topic;
}

/** Teams by the address that receives notices about their runs; an address of the environment already receives all of them. */
function teamsByAddress({
  notificationEmails: all = [],
  teamNotifications = {},
}: TrainingLauncherProps): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const [team, { emails }] of Object.entries(teamNotifications))
    for (const email of emails) if (!all.includes(email)) found.set(email, [...(found.get(email) ?? []), team]);
  return found;
}
