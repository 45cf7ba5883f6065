import { z } from 'zod';

/**
 * The interface between the construct TrainingLauncher and the functions `control` and `reconcile`: environment variables, the alias of a
 * team, and the three kinds of events that invoke reconcile.
 */

/** Interval at which reconcile reads the actual state, independent of events. */
export const TICK_SECONDS = 300;
/** Timeout of a function whose construct sets none. */
export const FUNCTION_TIMEOUT_SECONDS = 60;
/** Timeout of `control`. */
export const CONTROL_TIMEOUT_SECONDS = 60;
/** Timeout of reconcile, which observes runs sequentially within one invocation. */
export const RECONCILE_TIMEOUT_SECONDS = 120;
/** The FIFO queue: Lambda recommends a visibility timeout of six times the function timeout. */
export const RUN_QUEUE_VISIBILITY_SECONDS = 6 * RECONCILE_TIMEOUT_SECONDS;
/** A message that failed this many times is moved to the dead-letter queue. */
export const RUN_QUEUE_MAX_RECEIVES = 5;
/** One message at a time: a slow run does not delay others, and a message that fails fails alone, so that its group keeps its order. */
export const RUN_QUEUE_BATCH_SIZE = 1;
/** Ticks and job events invoke reconcile asynchronously: Lambda retries a failed invocation this many times. */
export const ASYNC_RETRIES = 2;
/** Age at which Lambda drops an asynchronous event; the next tick compensates for it. */
export const ASYNC_MAX_AGE_SECONDS = 3600;
/** Time that CloudFormation waits for a registered run, and the timeout of the function that submits it. */
export const REGISTERED_RUN_TIMEOUT_SECONDS = 300;

/** Environment variables of `control` and `reconcile`, and of other functions that read the run table. */
export const ENV = {
  /** Name, such as `research`. */
  environment: 'SLIPWAY_ENVIRONMENT',
  runTable: 'SLIPWAY_RUN_TABLE',
  /** URL of the FIFO queue with one message per run. */
  runQueueUrl: 'SLIPWAY_RUN_QUEUE_URL',
  /** Days for which the run table keeps the items of a run that is over; 0 or absent = indefinitely. */
  runRetentionDays: 'SLIPWAY_RUN_RETENTION_DAYS',
  // Of reconcile alone.
  /** ARN of the topic that users subscribe to. */
  notificationTopicArn: 'SLIPWAY_NOTIFICATION_TOPIC_ARN',
  /** Name of the event bus for Slipway's events (`default` when not set). */
  eventBusName: 'SLIPWAY_EVENT_BUS_NAME',
  /** Address of the documentation site to which notices link; they name paths of the package when it is not set. */
  docsUrl: 'SLIPWAY_DOCS_URL',
  /** Queue shares as JSON, `{"nlp": 2, "speech": 1}`; 1 for a team that is not listed. */
  teamShares: 'SLIPWAY_TEAM_SHARES',
  /** Topic ARNs for chat channels as JSON, by team name; the empty name is for the environment. */
  chatTopics: 'SLIPWAY_CHAT_TOPICS',
  /** Times of preemption as JSON, `{"afterMinutes": 15, ...}`; defaults are in lib/core/config/environment/limits.ts. */
  preemption: 'SLIPWAY_PREEMPTION',
  /** JSON list of the teams whose metrics are written. Absent = none. */
  metricTeams: 'SLIPWAY_METRIC_TEAMS',
} as const;

/** Content of the variables that have JSON. */
export const teamSharesSchema = z.record(z.string(), z.number().positive());
export const chatTopicsSchema = z.record(z.string(), z.string());
/** In minutes; null for the defaults. */
export const preemptionSchema = z
  .object({
    afterMinutes: z.number().nonnegative(),
    leastTrainingMinutes: z.number().nonnegative(),
    protectedMinutes: z.number().nonnegative(),
  })
  .nullable();
export const metricTeamsSchema = z.array(z.string());

/** Alias of `control` for one team; the function derives the team only from it. */
export const controlAliasName = (team: string): string => `team-${team}`;

/** The team of an invocation; undefined when the function was not invoked through a team's alias. */
export function findTeamOfAlias(invokedFunctionArn: string): string | undefined {
  return /^arn:[a-z-]+:lambda:[a-z0-9-]+:\d{12}:function:[A-Za-z0-9_-]+:team-([a-z][a-z0-9]{0,11})$/.exec(
    invokedFunctionArn,
  )?.[1];
}

/** SSM parameter with the team names of an environment, a StringList that every persona of the environment may read. */
export const teamsParameter = (environment: string): string => `/slipway/environments/${environment}`;

/** SSM parameter with the descriptor of a team. */
export const descriptorParameter = (environment: string, team: string): string =>
  `/slipway/environments/${environment}/${team}`;

/** Source of Slipway's events on the bus; the detail type is `Slipway Run State Change`. */
export const EVENT_SOURCE = 'slipway';
/** Detail type of Slipway's events. */
export const EVENT_DETAIL_TYPE = 'Slipway Run State Change';

/** Input of the schedule (every 5 minutes): correctness relies on the tick; events only reduce the delay. */
export const TICK = { slipway: 'tick' } as const;
/** Event of the schedule. */
export const tickSchema = z.looseObject({ slipway: z.literal('tick') });

/**
 * EventBridge events `SageMaker Training Job State Change` and the equivalent for processing jobs: only the name is used, all other values
 * are read from the service.
 */
export const jobEventSchema = z.looseObject({
  source: z.string(),
  'detail-type': z.string(),
  detail: z.looseObject({ TrainingJobName: z.string().optional(), ProcessingJobName: z.string().optional() }),
});

/** Body of a message in the FIFO queue. Message group: the run id, or `ADMIT_GROUP`. */
export const runMessageSchema = z.discriminatedUnion('kind', [
  // The time of the tick that woke it: what is due is decided by one clock.
  z.object({ kind: z.literal('run'), runId: z.string().min(1), tickAt: z.number().optional() }),
  // The run whose state has just changed: the index of active runs is eventually consistent.
  z.object({ kind: z.literal('admit'), runId: z.string().min(1).optional() }),
]);
/** Parsed body of a message in the FIFO queue. */
export type RunMessage = z.output<typeof runMessageSchema>;
/** Message group of admission passes: they run one at a time. */
const ADMIT_GROUP = 'admit';
/** Message group of a message: messages of one group are processed sequentially. */
export const messageGroup = (message: RunMessage): string => (message.kind === 'run' ? message.runId : ADMIT_GROUP);

/** Lambda's event of the queue; failed messages are returned as `batchItemFailures`. */
export const queueEventSchema = z.object({
  Records: z.array(
    z.object({
      messageId: z.string(),
      body: z.string(),
      receiptHandle: z.string().optional(),
      eventSource: z.literal('aws:sqs'),
    }),
  ),
});
