import { Duration, Stack } from 'aws-cdk-lib';
import * as cloudwatch from 'aws-cdk-lib/aws-cloudwatch';
import { SnsAction } from 'aws-cdk-lib/aws-cloudwatch-actions';
import type * as sqs from 'aws-cdk-lib/aws-sqs';
import { Construct } from 'constructs';
import { LOG_RETENTION_TYPE } from '../../core/contracts/custom-resources';
import { docsAddress } from '../../core/lifecycle/timeline';
import { logGroupArns, SHARED_LOG_GROUPS } from '../access/statement';
import { deployLogGroupName } from '../functions/handler-function';
import { customResource } from '../functions/handler-resource';
import type { TrainingLauncher } from '../launcher/training-launcher';
import { jobHostMetric, unitGraph } from './metrics';

const SHARED_RETENTION_DAYS = 365;

/** What each alarm means: the beginning of its section in docs/environment.md. */
const MEANINGS = {
  'reconcile-errors': 'Reconcile failed in three periods of five minutes in a row. Its log group contains the error.',
  'control-errors': 'Control failed (a refusal is not a failure). The caller saw an error.',
  'run-dead-letters': 'A message of a run failed five times. The run waits for the next tick.',
  'event-dead-letters':
    'An event did not reach reconcile. The tick reads the same state later; purge the queue when the cause is known.',
  'failed-invocations':
    'A function of a deploy did not handle an event in three tries: it has no permission, no free concurrency, or cannot be loaded.',
  'no-ticks': 'Reconcile was not invoked for 15 minutes: the schedule is disabled, or the function cannot start.',
} as const;

export interface ObservabilityProps {
  /** Name of the environment, by which the metrics of its jobs are selected. */
  readonly environment: string;
  /** Launcher whose functions and queues are monitored, and whose topic receives the alarms. */
  readonly launcher: TrainingLauncher;
  /** Dead-letter queue of the other functions. @default - they have none */
  readonly failedInvocations?: sqs.IQueue;
  /** Address of the documentation site to which the alarms link. @default - they name the page of the package */
  readonly docsUrl?: string;
}

/**
 * One dashboard, one alarm for each condition that needs a person (sent to the launcher's topic), and a retention for SageMaker's shared
 * log groups and the log group of the stack's deploys if they have none. Costs about 4 USD a month. The description of each alarm says what
 * it means, and where more is written.
 */
export class Observability extends Construct {
  /** The dashboard, `slipway-<environment>-<region>`. */
  public readonly dashboard: cloudwatch.Dashboard;
  /** The alarms. */
  public readonly alarms: cloudwatch.Alarm[];

  constructor(
    scope: Construct,
    id: string,
    private readonly props: ObservabilityProps,
  ) {
    super(scope, id);
    this.alarms = this.makeAlarms();
    const action = new SnsAction(props.launcher.topic);
    for (const alarm of this.alarms) {
      alarm.addAlarmAction(action);
      alarm.addOkAction(action);
    }
    this.dashboard = this.makeDashboard();
    this.setLogRetention();
  }

  private makeAlarms(): cloudwatch.Alarm[] {
    const { launcher, failedInvocations } = this.props;
    const every = { period: Duration.minutes(5), statistic: 'Sum' };
    const quarterly = { period: Duration.minutes(15), statistic: 'Sum' };
    return [
      this.alarm('ReconcileErrors', 'reconcile-errors', launcher.reconcile.function.metricErrors(every), {
        evaluationPeriods: 3,
      }),
      this.alarm('ControlErrors', 'control-errors', launcher.control.function.metricErrors(every)),
      this.alarm('RunDeadLetters', 'run-dead-letters', depth(launcher.runDeadLetters)),
      this.alarm('EventDeadLetters', 'event-dead-letters', depth(launcher.eventDeadLetters)),
      ...(failedInvocations ? [this.alarm('FailedInvocations', 'failed-invocations', depth(failedInvocations))] : []),
      // Monitors the schedule itself: no invocation at all means that the schedule is disabled.
      this.alarm('NoTicks', 'no-ticks', launcher.reconcile.function.metricInvocations(quarterly), {
        comparisonOperator: cloudwatch.ComparisonOperator.LESS_THAN_THRESHOLD,
        treatMissingData: cloudwatch.TreatMissingData.BREACHING,
      }),
    ];
  }

  private alarm(
    id: string,
    anchor: keyof typeof MEANINGS,
    metric: cloudwatch.IMetric,
    more: Partial<cloudwatch.AlarmProps> = {},
  ): cloudwatch.Alarm {
    const { environment, docsUrl } = this.props;
    return new cloudwatch.Alarm(this, id, {
      alarmDescription: `Slipway ${environment}: ${MEANINGS[anchor]} See ${docsAddress('environment', `alarm-${anchor}`, docsUrl)}`,
      metric,
      threshold: 1,
      evaluationPeriods: 1,
      comparisonOperator: cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
      treatMissingData: cloudwatch.TreatMissingData.NOT_BREACHING,
      ...more,
    });
  }

  private makeDashboard(): cloudwatch.Dashboard {
    const { environment, launcher } = this.props;
    const { function: reconcile } = launcher.reconcile;
    return new cloudwatch.Dashboard(this, 'Dashboard', {
      dashboardName: `slipway-${environment}-${Stack.of(this).region}`,
      widgets: [
        [new cloudwatch.AlarmStatusWidget({ title: 'Alarms', alarms: this.alarms, width: 24, height: 3 })],
        [
          unitGraph('GPU utilisation by instance', 'percent', [jobHostMetric(environment, 'GPUUtilization')]),
          unitGraph('GPU memory by instance', 'percent', [jobHostMetric(environment, 'GPUMemoryUtilization')]),
        ],
        [
          unitGraph('Reconcile: calls', 'calls', [
            reconcile.metricInvocations({ label: 'invocations' }),
            reconcile.metricErrors({ label: 'errors' }),
          ]),
          unitGraph('Reconcile: duration', 'milliseconds', [reconcile.metricDuration({ label: 'mean' })]),
        ],
        [
          unitGraph('Queues', 'messages', [
            depth(launcher.queue, 'runs'),
            depth(launcher.runDeadLetters, 'runs that failed'),
            depth(launcher.eventDeadLetters, 'events that failed'),
          ]),
        ],
      ],
    });
  }

  private setLogRetention(): void {
    const logGroupNames = [...SHARED_LOG_GROUPS, deployLogGroupName(this)];
    const wildcard = 'A few log groups: actions on a group are judged with the ending :*.';
    const props = {
      resourceType: LOG_RETENTION_TYPE,
      handler: 'log-retention',
      description: 'Gives SageMaker log groups a retention where none is set',
      statements: [
        {
          sid: 'FindSharedLogGroups',
          actions: ['logs:DescribeLogGroups'],
          resources: ['*'],
          wildcard: 'Listing log groups names none of them.',
        },
        {
          sid: 'MakeSharedLogGroups',
          actions: ['logs:CreateLogGroup'],
          resources: logGroupArns(Stack.of(this), SHARED_LOG_GROUPS),
          wildcard,
        },
        {
          sid: 'SetRetention',
          actions: ['logs:PutRetentionPolicy'],
          resources: logGroupArns(Stack.of(this), logGroupNames),
          wildcard,
        },
      ],
      serviceTimeout: Duration.minutes(3),
      properties: { logGroupNames: JSON.stringify(logGroupNames), retentionDays: String(SHARED_RETENTION_DAYS) },
    };
    customResource(this, 'SharedLogs', props, 'LogRetention');
  }
}

const depth = (queue: sqs.IQueue, label?: string): cloudwatch.Metric =>
  queue.metricApproximateNumberOfMessagesVisible({ period: Duration.minutes(5), statistic: 'Maximum', label });
