import {
  attemptItem,
  INTENT_ITEM,
  REQUEST_ITEM,
  RUN_ITEM,
  RUN_TABLE_SORT_KEY,
  RUN_TABLE_TTL_ATTRIBUTE,
} from '../../core/contracts/storage';
import { isOver, type RunRecord } from '../../core/lifecycle/record';
import { type Item, requestItem } from './items';

const DAY_SECONDS = 86_400;
/** The other items of a run expire after its RUN item, which DynamoDB deletes up to some days late: without them no run can continue. */
const LATER_SECONDS = 7 * DAY_SECONDS;
/** Items by which a start is found again, and its run. */
const RECORDS = [RUN_ITEM, INTENT_ITEM, REQUEST_ITEM];

/**
 * When a run expires, epoch seconds: a whole day, so that a repeated decision gives the same time. Undefined while it is not over.
 * @param days for which it is kept; 0 = indefinitely
 */
export function expiryOf({ endedAt, ...record }: RunRecord, days: number): number | undefined {
  if (days === 0 || !isOver(record) || endedAt === undefined) return undefined;
  return (Math.ceil(endedAt / (DAY_SECONDS * 1000)) + days) * DAY_SECONDS;
}

const nameOf = (item: Item): string => item[RUN_TABLE_SORT_KEY]?.S ?? '';

/** Those items of a run, and its request, that a write of the run does not contain and whose expiry changes. */
export function changedItems(all: readonly Item[], record: RunRecord, expiry: number | undefined): Item[] {
  const { runId, team, requestId, attempt } = record;
  const written = [RUN_ITEM, ...(attempt ? [attemptItem(attempt.number)] : [])];
  const isChanged = (item: Item) =>
    !written.includes(nameOf(item)) &&
    item[RUN_TABLE_TTL_ATTRIBUTE]?.N !== itemExpiry(item, record, expiry)?.toString();
  const request = requestId === undefined ? [] : [requestItem(team, requestId, runId)];
  return [...all.filter(isChanged), ...request].map((item) => expiring(item, record, expiry));
}

/** The item with the expiry that it has when its run expires at that time, or without one. */
export function expiring(item: Item, record: RunRecord, expiry: number | undefined): Item {
  const { [RUN_TABLE_TTL_ATTRIBUTE]: _, ...rest } = item;
  const at = itemExpiry(item, record, expiry);
  return at === undefined ? rest : { ...rest, [RUN_TABLE_TTL_ATTRIBUTE]: { N: String(at) } };
}

function itemExpiry(item: Item, { requestId }: RunRecord, expiry: number | undefined): number | undefined {
  if (expiry === undefined || (requestId === undefined && RECORDS.includes(nameOf(item)))) return undefined;
  return nameOf(item) === RUN_ITEM ? expiry : expiry + LATER_SECONDS;
}
