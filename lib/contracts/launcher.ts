import { z } from 'zod';

/**
 * What the construct TrainingLauncher sets and the functions `control` and `reconcile` read: names of environment variables,
 * the alias of a team, and the three kinds of events that reach reconcile.
 */

/** Both: name of the environment (`research`). */
export const ENV_ENVIRONMENT = 'SLIPWAY_ENVIRONMENT';
/** Both: name of the run table. */
export const ENV_RUN_TABLE = 'SLIPWAY_RUN_TABLE';
/** Both: URL of the FIFO queue that carries one message per run. */
export const ENV_RUN_QUEUE_URL = 'SLIPWAY_RUN_QUEUE_URL';
/** Reconcile: ARN of the topic that people subscribe to. */
export const ENV_NOTIFICATION_TOPIC_ARN = 'SLIPWAY_NOTIFICATION_TOPIC_ARN';
/** Reconcile: name of the event bus for events of our own (`default` when not set). */
export const ENV_EVENT_BUS_NAME = 'SLIPWAY_EVENT_BUS_NAME';
/** Reconcile: queue shares as JSON, `{"nlp": 2, "speech": 1}`; a team that is not named has 1. */
export const ENV_TEAM_SHARES = 'SLIPWAY_TEAM_SHARES';
export const teamSharesSchema = z.record(z.string(), z.number().positive());

/** Alias of `control` for one team; the function takes the team from it and from nothing else. */
export const controlAliasName = (team: string): string => `team-${team}`;

/** The team of an invocation; undefined when the function was not called through an alias of a team. */
export function findTeamOfAlias(invokedFunctionArn: string): string | undefined {
  return /^arn:[a-z-]+:lambda:[a-z0-9-]+:\d{12}:function:[A-Za-z0-9_-]+:team-([a-z][a-z0-9]{0,11})$/.exec(
    invokedFunctionArn,
  )?.[1];
}

/** SSM parameter with the descriptor of a team. */
export const descriptorParameter = (environment: string, team: string): string =>
  `/slipway/environments/${environment}/${team}`;

/** Source of events of our own on the bus; the detail type is `Slipway Run State Change`. */
export const EVENT_SOURCE = 'slipway';
export const EVENT_DETAIL_TYPE = 'Slipway Run State Change';

/** Input of the schedule (every 5 minutes): events are hints, the tick is the truth. */
export const TICK = { slipway: 'tick' } as const;
export const tickSchema = z.looseObject({ slipway: z.literal('tick') });

/** EventBridge, `SageMaker Training Job State Change` and its processing twin: only the name is used, the rest is read again. */
export const jobEventSchema = z.looseObject({
  source: z.string(),
  'detail-type': z.string(),
  detail: z.looseObject({ TrainingJobName: z.string().optional(), ProcessingJobName: z.string().optional() }),
});

/** Body of a message in the FIFO queue. Message group: the run id, or `ADMIT_GROUP`. */
export const runMessageSchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('run'), runId: z.string().min(1) }),
  z.object({ kind: z.literal('admit') }),
]);
export type RunMessage = z.output<typeof runMessageSchema>;
export const ADMIT_GROUP = 'admit';
export const messageGroup = (message: RunMessage): string => (message.kind === 'run' ? message.runId : ADMIT_GROUP);

/** Lambda's event of the queue; failed messages are answered as `batchItemFailures`. */
export const queueEventSchema = z.looseObject({
  Records: z.array(
    z.looseObject({
      messageId: z.string(),
      body: z.string(),
      receiptHandle: z.string().optional(),
      eventSource: z.literal('aws:sqs'),
    }),
  ),
});
