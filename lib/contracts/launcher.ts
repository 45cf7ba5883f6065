import { z } from 'zod';

/**
 * What the construct TrainingLauncher sets and the functions `control` and `reconcile` read: names of environment variables,
 * the alias of a team, and the three kinds of events that reach reconcile.
 */

/** How often reconcile reads the truth, whatever events came. */
export const TICK_SECONDS = 300;
/** Limits of the two functions: Lambda ends an invocation that takes longer. */
export const CONTROL_TIMEOUT_SECONDS = 60;
/** Limit of reconcile, which observes runs one after another within one invocation. */
export const RECONCILE_TIMEOUT_SECONDS = 120;
/** The FIFO queue: Lambda asks for a visibility timeout of six times the function's own. */
export const RUN_QUEUE_VISIBILITY_SECONDS = 6 * RECONCILE_TIMEOUT_SECONDS;
/** A message that was received this often without success goes to the dead-letter queue. */
export const RUN_QUEUE_MAX_RECEIVES = 5;
/** Messages of one invocation: with one, a run that takes long delays no other. */
export const RUN_QUEUE_BATCH_SIZE = 1;
/** Ticks and job events invoke reconcile asynchronously: Lambda repeats a failed one this often, and drops it at this age. */
export const ASYNC_RETRIES = 2;
/** Age at which Lambda drops an asynchronous event; the next tick makes up for it. */
export const ASYNC_MAX_AGE_SECONDS = 3600;
/** What CloudFormation waits for a registered run, and the limit of the function that submits it. */
export const REGISTERED_RUN_TIMEOUT_SECONDS = 300;

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
/** Content of `ENV_TEAM_SHARES`: queue shares by team. */
export const teamSharesSchema = z.record(z.string(), z.number().positive());

/** Reconcile: ARNs of the topics that chat channels read, as JSON: of the environment by the empty name, of teams by theirs. */
export const ENV_CHAT_TOPICS = 'SLIPWAY_CHAT_TOPICS';
/** Content of `ENV_CHAT_TOPICS`: topic ARNs by team. */
export const chatTopicsSchema = z.record(z.string(), z.string());

/** Reconcile: times of preemption as JSON, `{"afterMinutes": 15, ...}`; lib/spec/environment/preemption-times.ts when not set. */
export const ENV_PREEMPTION = 'SLIPWAY_PREEMPTION';
/** Content of `ENV_PREEMPTION`, in minutes; null switches preemption off. */
export const preemptionSchema = z
  .object({
    afterMinutes: z.number().nonnegative(),
    leastTrainingMinutes: z.number().nonnegative(),
    protectedMinutes: z.number().nonnegative(),
  })
  .nullable();

/** Alias of `control` for one team; the function takes the team from it and from nothing else. */
export const controlAliasName = (team: string): string => `team-${team}`;

/** The team of an invocation; undefined when the function was not called through an alias of a team. */
export function findTeamOfAlias(invokedFunctionArn: string): string | undefined {
  return /^arn:[a-z-]+:lambda:[a-z0-9-]+:\d{12}:function:[A-Za-z0-9_-]+:team-([a-z][a-z0-9]{0,11})$/.exec(
    invokedFunctionArn,
  )?.[1];
}

/** SSM parameter with the names of an environment's teams, a StringList that every persona of the environment may read. */
export const teamsParameter = (environment: string): string => `/slipway/environments/${environment}`;

/** SSM parameter with the descriptor of a team. */
export const descriptorParameter = (environment: string, team: string): string =>
  `/slipway/environments/${environment}/${team}`;

/** Source of events of our own on the bus; the detail type is `Slipway Run State Change`. */
export const EVENT_SOURCE = 'slipway';
/** Detail type of events of our own. */
export const EVENT_DETAIL_TYPE = 'Slipway Run State Change';

/** Input of the schedule (every 5 minutes): events are hints, the tick is the truth. */
export const TICK = { slipway: 'tick' } as const;
/** The schedule's event. */
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
  // The run whose state has just changed: the index of active runs may not show it yet.
  z.object({ kind: z.literal('admit'), runId: z.string().min(1).optional() }),
]);
/** Body of a message in the FIFO queue, as read. */
export type RunMessage = z.output<typeof runMessageSchema>;
/** Message group of passes over the queue: there is one at a time. */
export const ADMIT_GROUP = 'admit';
/** Message group of a message: messages of one group are handled one after another. */
export const messageGroup = (message: RunMessage): string => (message.kind === 'run' ? message.runId : ADMIT_GROUP);

/** Lambda's event of the queue; failed messages are answered as `batchItemFailures`. */
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
