import { createHash } from 'node:crypto';
import { Stack, Token } from 'aws-cdk-lib';
import * as chatbot from 'aws-cdk-lib/aws-chatbot';
import * as iam from 'aws-cdk-lib/aws-iam';
import type * as kms from 'aws-cdk-lib/aws-kms';
import * as sns from 'aws-cdk-lib/aws-sns';
import { Construct, type IConstruct } from 'constructs';
import { isDeployed } from '../embedded-aws';

export interface ChatChannelProps {
  /** Name of the environment. */
  readonly environment: string;
  /** The team whose notices are sent. @default - all notices of the environment, and its alarms */
  readonly team?: string;
  /** Workspace that was authorised for the account in the console of Amazon Q Developer in chat applications: `T0123ABCD`. */
  readonly workspaceId: string;
  /** `C0123ABCD`. */
  readonly channelId: string;
  /** Key of the topic. */
  readonly encryptionKey: kms.IKey;
  /** Topic of the alarms, which the service formats itself. @default - none */
  readonly alarms?: sns.ITopic;
}

/**
 * A Slack channel that receives notices. It cannot do anything else: its role has no permissions, its guardrail denies everything, and a
 * person who asks in the channel needs a role of their own. The workspace must have been authorised once in the console. Costs nothing.
 *
 * The embedded AWS does not have this service: there only the topic is created.
 */
export class ChatChannel extends Construct {
  /** Topic for messages in the format of custom notifications. */
  readonly topic: sns.Topic;
  private readonly slackChannel: string;

  constructor(scope: Construct, id: string, props: ChatChannelProps) {
    super(scope, id);
    const { environment, team, workspaceId, channelId, encryptionKey, alarms } = props;
    this.slackChannel = tagOf(workspaceId, channelId);
    this.topic = new sns.Topic(this, 'Resource', {
      displayName: ['Slipway', environment, team, 'chat'].filter(Boolean).join(' '),
      masterKey: encryptionKey,
      enforceSSL: true,
    });
    if (!isDeployed(this, 'slack')) return;
    this.requireFree(channelId);
    const { region } = Stack.of(this);
    new chatbot.SlackChannelConfiguration(this, 'Slack', {
      // Another channel is another configuration, which is created before the old one is deleted.
      slackChannelConfigurationName: ['slipway', environment, region, team, this.slackChannel]
        .filter(Boolean)
        .join('-'),
      slackWorkspaceId: workspaceId,
      slackChannelId: channelId,
      notificationTopics: [this.topic, ...(alarms ? [alarms] : [])],
      role: new iam.Role(this, 'Role', {
        assumedBy: new iam.ServicePrincipal('chatbot.amazonaws.com'),
        description: `Slack channel of Slipway ${environment}: may do nothing`,
      }),
      // Without one the service uses AdministratorAccess as the channel's guardrail.
      guardrailPolicies: [iam.ManagedPolicy.fromAwsManagedPolicyName('AWSDenyAll')],
      userRoleRequired: true,
    });
  }

  /** Environment rules see one file: other files, or stacks of their own, may use the channel in the same account. */
  private requireFree(channelId: string): void {
    const { account } = Stack.of(this);
    const isTaken = (one: IConstruct) =>
      one instanceof ChatChannel && one !== this && one.slackChannel === this.slackChannel;
    const taken = this.node.root.node.findAll().find((one) => isTaken(one) && Stack.of(one).account === account);
    if (taken && !Token.isUnresolved(account))
      throw new Error(
        `${this.node.path}: slackChannel.channelId: must not be the channel of ${taken.node.path}: an account can use a Slack channel once, got ${channelId}; use another channel`,
      );
  }
}

const tagOf = (...ids: string[]): string => createHash('sha256').update(ids.join('/')).digest('hex').slice(0, 8);
