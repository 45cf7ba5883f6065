import { Duration, Names } from 'aws-cdk-lib';
import * as events from 'aws-cdk-lib/aws-events';
import * as targets from 'aws-cdk-lib/aws-events-targets';
import type * as lambda from 'aws-cdk-lib/aws-lambda';
import type * as sqs from 'aws-cdk-lib/aws-sqs';
import type { Construct } from 'constructs';
import { RUN_QUEUE_BATCH_SIZE, TICK, TICK_SECONDS } from '../../core/contracts/launcher';

/** Event sources of reconcile. */
interface ReconcileSources {
  /** Name of the environment, which is the prefix of its job names. */
  readonly environment: string;
  readonly reconcile: lambda.Function;
  /** FIFO queue with one message group per run. */
  readonly queue: sqs.Queue;
  /** Receives events that did not reach the function. */
  readonly undelivered: sqs.Queue;
}

/** Three triggers: a message per run, SageMaker's own events, and a schedule that works without either. */
export function feedReconcile(scope: Construct, sources: ReconcileSources): void {
  const { environment, reconcile, queue, undelivered } = sources;
  // The id of the CDK's own event source, which would grant more than receiving: another id would create a second mapping.
  reconcile.addEventSourceMapping(`SqsEventSource:${Names.nodeUniqueId(queue.node)}`, {
    eventSourceArn: queue.queueArn,
    batchSize: RUN_QUEUE_BATCH_SIZE,
    reportBatchItemFailures: true,
  });
  const target = (event?: events.RuleTargetInput) =>
    new targets.LambdaFunction(reconcile, { event, deadLetterQueue: undelivered });
  for (const kind of ['Training', 'Processing']) {
    new events.Rule(scope, `${kind}JobEvents`, {
      description: `Slipway ${environment}: state changes of its ${kind.toLowerCase()} jobs`,
      eventPattern: {
        source: ['aws.sagemaker'],
        detailType: [`SageMaker ${kind} Job State Change`],
        detail: { [`${kind}JobName`]: events.Match.prefix(`${environment}-`) },
      },
      targets: [target()],
    });
  }
  new events.Rule(scope, 'Tick', {
    description: `Slipway ${environment}: runs reconcile at each tick`,
    schedule: events.Schedule.rate(Duration.seconds(TICK_SECONDS)),
    targets: [target(events.RuleTargetInput.fromObject(TICK))],
  });
}
