import { Duration, Names } from 'aws-cdk-lib';
import * as events from 'aws-cdk-lib/aws-events';
import * as targets from 'aws-cdk-lib/aws-events-targets';
import { RUN_QUEUE_BATCH_SIZE, TICK, TICK_SECONDS } from '../../core/contracts/launcher';
import type { TrainingLauncher } from './training-launcher';

/** Three triggers: a message per run, SageMaker's own events, and a schedule that works without either. */
export function feedReconcile(launcher: TrainingLauncher, environment: string): void {
  const { queue, eventDeadLetters: deadLetterQueue } = launcher;
  const { function: reconcile } = launcher.reconcile;
  // The id of the CDK's own event source, which would grant more than receiving: another id would create a second mapping.
  reconcile.addEventSourceMapping(`SqsEventSource:${Names.nodeUniqueId(queue.node)}`, {
    eventSourceArn: queue.queueArn,
    batchSize: RUN_QUEUE_BATCH_SIZE,
    reportBatchItemFailures: true,
  });
  const target = (event?: events.RuleTargetInput) => new targets.LambdaFunction(reconcile, { event, deadLetterQueue });
  for (const kind of ['Training', 'Processing']) {
    new events.Rule(launcher, `${kind}JobEvents`, {
      description: `Slipway ${environment}: state changes of its ${kind.toLowerCase()} jobs`,
      eventPattern: {
        source: ['aws.sagemaker'],
        detailType: [`SageMaker ${kind} Job State Change`],
        detail: { [`${kind}JobName`]: events.Match.prefix(`${environment}-`) },
      },
      targets: [target()],
    });
  }
  new events.Rule(launcher, 'Tick', {
    description: `Slipway ${environment}: runs reconcile at each tick`,
    schedule: events.Schedule.rate(Duration.seconds(TICK_SECONDS)),
    targets: [target(events.RuleTargetInput.fromObject(TICK))],
  });
}
