/**
 * The run table: one DynamoDB table per environment and region. Written by control and reconcile only, always with conditions.
 *
 * | runId | item | holds |
 * |---|---|---|
 * | run id | `RUN` | the run: intent, state, budgets, current attempt, `version` (optimistic lock) |
 * | run id | `INTENT` | what the run file decided: resolved spec, code, driver and image, never changed |
 * | run id | `ATTEMPT#0001` | one attempt, as last seen |
 * | run id | `EVENT#2026-11-21T12:00:00.000Z#0042` | one line of the timeline, with its evidence |
 * | `REQUEST#<team>#<client request id>` | `REQUEST` | the run id that this request made: a repeated `start` finds it |
 * | `QUEUE` | `QUEUE` | what the teams have used, and the queue shares of the last pass |
 * | `QUOTAS` | `QUOTAS` | the instance quotas for which a notice was sent |
 * | `CLOSED` | `CLOSED` | whether the stack is being deleted: then control starts and resumes nothing |
 *
 * Both indexes are sparse: only RUN items carry their keys.
 */
export const RUN_TABLE_PARTITION_KEY = 'runId';
/** Sort key: which item of the run it is. */
export const RUN_TABLE_SORT_KEY = 'item';

/**
 * Runs that are not over, and runs of which something is still to be done: a notice to publish, or the cost of a warm pool to book. Partition key:
 * the constant `ACTIVE_VALUE`, removed when nothing is left to do. Projection: ALL.
 */
export const ACTIVE_INDEX = 'active-runs';
/** Attribute that only the items in the index of active runs carry. */
export const ACTIVE_INDEX_PARTITION_KEY = 'active';
/** Sort key of the index of active runs. */
export const ACTIVE_INDEX_SORT_KEY = 'runId';
/** Boolean attribute of an item that is in the index only until the cost of its warm pool is booked: it keeps no stack from being deleted. */
export const POOL_ONLY_ATTRIBUTE = 'poolOnly';
/** The one value of the partition key of the index of active runs. */
export const ACTIVE_VALUE = 'active';

/** All runs of a team, newest last. Projection: ALL. */
export const TEAM_INDEX = 'team-runs';
/** Partition key of the index of a team's runs: the team's name. */
export const TEAM_INDEX_PARTITION_KEY = 'team';
/** Sort key of the index of a team's runs: ISO 8601 time of the start. */
export const TEAM_INDEX_SORT_KEY = 'createdAt';

/** DynamoDB deletes items that have this attribute (epoch seconds). Only 0.1.0 wrote it, to REQUEST items; nothing expires any more. */
export const RUN_TABLE_TTL_ATTRIBUTE = 'expiresAt';

/** Sort key of the run itself. */
export const RUN_ITEM = 'RUN';
/** Sort key of what the run file decided. */
export const INTENT_ITEM = 'INTENT';
/** Sort key of a client's request. */
export const REQUEST_ITEM = 'REQUEST';
/** Partition and sort key of the one item of the queue: no run id has capitals. */
export const QUEUE_ITEM = 'QUEUE';
/** Partition and sort key of the item with the quotas for which a notice was sent. */
export const QUOTAS_ITEM = 'QUOTAS';
/** Partition and sort key of the item that the guard of the deletion writes; its attribute says whether. */
export const CLOSED_ITEM = 'CLOSED';
/** Boolean attribute of the item `CLOSED_ITEM`. */
export const CLOSED_ATTRIBUTE = 'isClosed';
/** Sort keys of attempts begin with this. */
export const ATTEMPT_ITEM_PREFIX = 'ATTEMPT#';
/** Sort keys of timeline entries begin with this. */
export const EVENT_ITEM_PREFIX = 'EVENT#';

/** Sort key of an attempt by its number; four digits keep them in order. */
export const attemptItem = (attempt: number): string => `${ATTEMPT_ITEM_PREFIX}${String(attempt).padStart(4, '0')}`;

/** Sorts by time; `sequence` (the version of the run that wrote it, then its place) keeps lines of one instant apart. */
export const eventItem = (at: string, version: number, place: number): string =>
  `${EVENT_ITEM_PREFIX}${at}#${String(version).padStart(6, '0')}.${String(place).padStart(2, '0')}`;

/** Partition key of a client's request. */
export const requestKey = (team: string, clientRequestId: string): string => `REQUEST#${team}#${clientRequestId}`;
