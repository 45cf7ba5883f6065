import { Duration, Stack } from 'aws-cdk-lib';
import type * as dynamodb from 'aws-cdk-lib/aws-dynamodb';
import * as iam from 'aws-cdk-lib/aws-iam';
import type * as kms from 'aws-cdk-lib/aws-kms';
import * as lambda from 'aws-cdk-lib/aws-lambda';
import type * as sns from 'aws-cdk-lib/aws-sns';
import * as sqs from 'aws-cdk-lib/aws-sqs';
import { Construct } from 'constructs';
import {
  DEFAULT_RUN_RETENTION_DAYS,
  type EnvironmentSpec,
  type Notifications,
} from '../../core/config/environment-file';
import {
  ASYNC_MAX_AGE_SECONDS,
  ASYNC_RETRIES,
  CONTROL_TIMEOUT_SECONDS,
  controlAliasName,
  ENV,
  RECONCILE_TIMEOUT_SECONDS,
  RUN_QUEUE_MAX_RECEIVES,
  RUN_QUEUE_VISIBILITY_SECONDS,
} from '../../core/contracts/launcher';
import { controlFunctionName } from '../../core/contracts/names';
import type { JobGuardrails } from '../access/job-guardrails';
import { controlStatements, reconcileStatements } from '../access/launcher-policy';
import { allow, placeOf } from '../access/statement';
import { type JobRoles, passableArns } from '../access/training-roles';
import { acknowledge } from '../acknowledged-checks';
import { HandlerFunction } from '../functions/handler-function';
import { ChatChannel } from '../operations/chat-channel';
import { notificationTopic } from '../operations/notification-topic';
import { OperationsKey } from '../operations/operations-key';
import { runTable } from '../storage/run-table';
import { type TrainingStorage, teamKeyArns } from '../storage/training-storage';
import type { AuditFunctionProps } from './audit-function';
import { feedReconcile } from './reconcile-events';

export interface TrainingLauncherProps {
  /** Name of the environment, which is the prefix of the names of jobs, functions and table. */
  readonly environment: string;
  /** Buckets of code, checkpoints and results, and their key. */
  readonly storage: Pick<TrainingStorage, 'checkpointBucket' | 'artifactBucket' | 'key'> &
    Partial<Pick<TrainingStorage, 'teamKeys'>>;
  /** Roles of the jobs: those of `TrainingRoles`, or existing ones. */
  readonly roles: JobRoles;
  /** Guardrails that IAM enforces for every job. @default - only tags, key and network */
  readonly guardrails?: EnvironmentSpec['guardrails'];
  /** Queue share by team. */
  readonly shares: Readonly<Record<string, number>>;
  /** Address of the documentation site to which notices link. @default - they contain what the runbook says to do */
  readonly docsUrl?: string;
  /** Times of preemption. @default - 15 minutes of waiting, an hour of training, four hours of protection */
  readonly preemption?: EnvironmentSpec['queue']['preemption'];
  /** Key of notifications, queues, and the functions' logs and environment variables: that of an `OperationsKey`. @default - a new key */
  readonly operationsKey?: kms.IKey;
  /** Email addresses for notices of all runs. @default - none */
  readonly notificationEmails?: readonly string[];
  /** Slack channel for notices of all runs and for alarms. @default - none */
  readonly slackChannel?: Notifications['slackChannel'];
  /** Recipients of notices about a team's runs, by team. @default - none */
  readonly teamNotifications?: Readonly<Record<string, Notifications>>;
  /** Teams whose metrics reconcile writes, for `TeamDashboard`. @default - none */
  readonly dashboardTeams?: readonly string[];
  /** Whether the run table is retained when the stack is deleted. @default true */
  readonly retain?: boolean;
  /** Whether to adopt the run table of an earlier stack. @default false */
  readonly adopt?: boolean;
  /** Days after the end of a run until its items in the run table expire; 0 keeps them indefinitely. @default 400 */
  readonly runRetentionDays?: number;
  /** Whether deletion protection is enabled for the run table. @default false */
  readonly tableDeletionProtection?: boolean;
}

/**
 * Launches training jobs and supervises runs: `control`, which people invoke through one alias per team and which only writes intents, and
 * `reconcile`, the only function that creates and stops jobs. Costs cents a month without runs.
 */
export class TrainingLauncher extends Construct {
  /** Table of runs, attempts and events. */
  public readonly table: dynamodb.ITable;
  /** Key of queues, topics, logs and environment variables. */
  public readonly operationsKey: kms.IKey;
  /** Topic of notices and alarms. */
  public readonly topic: sns.Topic;
  /** Topics for chat channels: that of the environment under the empty name, those of teams under their names. */
  public readonly chatTopics: Readonly<Record<string, sns.Topic>>;
  /** FIFO queue with one message group per run. */
  public readonly queue: sqs.Queue;
  /** Messages of runs that failed five times. */
  public readonly runDeadLetters: sqs.Queue;
  /** Events that did not reach reconcile. */
  public readonly eventDeadLetters: sqs.Queue;
  /** Function that people call, through one alias per team. */
  public readonly control: HandlerFunction;
  /** The only function that creates, observes and stops jobs. */
  public readonly reconcile: HandlerFunction;
  /** The aliases of control, by team. */
  public readonly aliases: Readonly<Record<string, lambda.Alias>>;

  constructor(
    scope: Construct,
    id: string,
    private readonly props: TrainingLauncherProps,
  ) {
    super(scope, id);
    this.table = runTable(this, props);
    this.operationsKey =
      props.operationsKey ??
      new OperationsKey(this, 'Key', { description: `Slipway ${props.environment}: operations` }).key;
    this.topic = notificationTopic(this, this.operationsKey, props);
    this.chatTopics = this.makeChatChannels();
    this.runDeadLetters = this.makeQueue('RunDeadLetters', true);
    this.eventDeadLetters = this.makeQueue('EventDeadLetters', false);
    acknowledge(this.eventDeadLetters, {
      id: 'AwsSolutions-SQS3',
      reason: 'It is the dead-letter queue of the event rules and of asynchronous invocations.',
    });
    this.queue = this.makeQueue('RunQueue', true, this.runDeadLetters);
    this.control = this.makeControl();
    this.aliases = teamAliases(this, this.control, Object.keys(props.roles.teams));
    this.reconcile = this.makeReconcile();
    feedReconcile(this, props.environment);
  }

  /** Allows `grantee` to start, stop and read the runs of one team. */
  grantLaunch(team: string, grantee: iam.IGrantable): iam.Grant {
    const alias = this.aliases[team];
    if (!alias)
      throw new Error(`${this.node.path}: team must be one of ${Object.keys(this.aliases).join(', ')}, got ${team}`);
    return iam.Grant.addToPrincipal({ grantee, actions: ['lambda:InvokeFunction'], resourceArns: [alias.functionArn] });
  }

  private makeChatChannels(): Record<string, sns.Topic> {
    const { environment, slackChannel, teamNotifications = {} } = this.props;
    const shared = { environment, encryptionKey: this.operationsKey };
    const ofTeams = Object.entries(teamNotifications).flatMap(([team, { slackChannel: channel }]) =>
      channel ? [[team, new ChatChannel(this, `Chat-${team}`, { ...shared, team, ...channel }).topic] as const] : [],
    );
    const all = slackChannel && new ChatChannel(this, 'Chat', { ...shared, ...slackChannel, alarms: this.topic }).topic;
    return { ...(all && { '': all }), ...Object.fromEntries(ofTeams) };
  }

  private makeQueue(id: string, fifo: boolean, deadLetters?: sqs.Queue): sqs.Queue {
    return new sqs.Queue(this, id, {
      fifo: fifo || undefined,
      encryption: sqs.QueueEncryption.KMS,
      encryptionMasterKey: this.operationsKey,
      enforceSSL: true,
      visibilityTimeout: Duration.seconds(RUN_QUEUE_VISIBILITY_SECONDS),
      retentionPeriod: Duration.days(14),
      deadLetterQueue: deadLetters && { queue: deadLetters, maxReceiveCount: RUN_QUEUE_MAX_RECEIVES },
    });
  }

  private makeControl(): HandlerFunction {
    const control = new HandlerFunction(this, 'Control', {
      handler: 'control',
      functionName: controlFunctionName(this.props.environment),
      description: `Slipway ${this.props.environment}: start, stop, resume, status and logs of runs`,
      timeout: Duration.seconds(CONTROL_TIMEOUT_SECONDS),
      memorySize: 512,
      encryptionKey: this.operationsKey,
      environment: this.sharedEnvironment(),
    });
    allow(control.role, ...controlStatements(this.context(), this.props.guardrails?.allowRemoteDebug));
    return control;
  }

  private makeReconcile(): HandlerFunction {
    const reconcile = new HandlerFunction(this, 'Reconcile', {
      handler: 'reconcile',
      functionName: `slipway-${this.props.environment}-reconcile`,
      description: `Slipway ${this.props.environment}: creates, watches and stops the jobs of runs`,
      timeout: Duration.seconds(RECONCILE_TIMEOUT_SECONDS),
      memorySize: 512,
      encryptionKey: this.operationsKey,
      environment: {
        ...this.sharedEnvironment(),
        [ENV.notificationTopicArn]: this.topic.topicArn,
        [ENV.teamShares]: JSON.stringify(this.props.shares),
        ...(this.props.docsUrl && { [ENV.docsUrl]: this.props.docsUrl }),
        ...(Object.keys(this.chatTopics).length > 0 && {
          [ENV.chatTopics]: Stack.of(this).toJsonString(
            Object.fromEntries(Object.entries(this.chatTopics).map(([name, topic]) => [name, topic.topicArn])),
          ),
        }),
        ...(this.props.dashboardTeams?.length && {
          [ENV.metricTeams]: JSON.stringify(this.props.dashboardTeams),
        }),
        ...(this.props.preemption && { [ENV.preemption]: JSON.stringify(this.props.preemption) }),
      },
    });
    const statements = reconcileStatements(this.context(), {
      passableRoleArns: passableArns(this.props.roles),
      topicArns: [this.topic, ...Object.values(this.chatTopics)].map((topic) => topic.topicArn),
      guardrails: this.guardrails(),
      undeliveredArn: this.eventDeadLetters.queueArn,
    });
    allow(reconcile.role, ...statements);
    // The CDK's own dead-letter queue would grant more than sending.
    const resource = reconcile.function.node.defaultChild as lambda.CfnFunction;
    resource.deadLetterConfig = { targetArn: this.eventDeadLetters.queueArn };
    reconcile.function.configureAsyncInvoke({
      maxEventAge: Duration.seconds(ASYNC_MAX_AGE_SECONDS),
      retryAttempts: ASYNC_RETRIES,
    });
    return reconcile;
  }

  private guardrails(): JobGuardrails {
    const { environment, roles, storage } = this.props;
    return {
      environment,
      teams: Object.keys(roles.teams),
      keyArns: [storage.key.keyArn, ...teamKeyArns(storage)],
      subnetIds: roles.subnetIds,
      securityGroupIds: roles.securityGroupIds,
      limits: this.props.guardrails ?? {},
    };
  }

  private sharedEnvironment(): Record<string, string> {
    return {
      [ENV.environment]: this.props.environment,
      [ENV.runTable]: this.table.tableName,
      [ENV.runQueueUrl]: this.queue.queueUrl,
      [ENV.runRetentionDays]: String(this.props.runRetentionDays ?? DEFAULT_RUN_RETENTION_DAYS),
    };
  }

  private context() {
    const { storage } = this.props;
    return {
      ...auditContext(this, { ...this.props, launcher: this }),
      queueArn: this.queue.queueArn,
      artifactBucketArn: storage.artifactBucket.bucketArn,
    };
  }
}

/** What audit, control and reconcile read. */
export const auditContext = (scope: Construct, { environment, storage, launcher }: AuditFunctionProps) => ({
  ...placeOf(scope),
  environment,
  runTableArn: launcher.table.tableArn,
  checkpointBucketArn: storage.checkpointBucket.bucketArn,
  keyArn: storage.key.keyArn,
  teamKeyArns: teamKeyArns(storage),
  operationsKeyArn: launcher.operationsKey.keyArn,
});

/** Aliases of a function that people invoke, by team. */
export function teamAliases(
  scope: Construct,
  called: HandlerFunction,
  teams: readonly string[],
): Record<string, lambda.Alias> {
  const version = called.version();
  const alias = (team: string) =>
    new lambda.Alias(scope, `Alias-${team}`, { aliasName: controlAliasName(team), version });
  return Object.fromEntries(teams.map((team) => [team, alias(team)]));
}
