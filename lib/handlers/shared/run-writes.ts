import type { TransactWriteItem } from '@aws-sdk/client-dynamodb';
import { MONTH_USD_ATTRIBUTE } from '../../contracts/run-table';
import type { TimelineEvent } from '../../lifecycle/action';
import type { RunRecord } from '../../lifecycle/record';
import { attemptItemOf, eventItemOf, type Item, monthItemKey, runItem, type Written } from './items';

/** A transaction may contain 100 items; more events than this in one decision indicate a bug. */
const MOST_EVENTS = 90;

/** A changed run, and the timeline events of the change. */
interface RunChange {
  record: RunRecord;
  events: readonly TimelineEvent[];
}

/**
 * The items of a changed run: the run, its attempt, and its timeline events.
 * @param written how documents of the first two become attributes. @default - as JSON
 */
export function itemsOf({ record, events }: RunChange, written?: Written): { run: Item; others: Item[] } {
  const { runId, attempt, version } = record;
  return {
    run: runItem(record, written),
    others: [
      ...(attempt ? [attemptItemOf(runId, attempt, written)] : []),
      ...events.slice(0, MOST_EVENTS).map((line, place) => eventItemOf(runId, version, place, line)),
    ],
  };
}

/**
 * The writes of a changed run. The first one is conditional on the version with which the run was read, so that what the change costs is
 * added to the months of the team exactly once.
 */
export function writesOf(
  TableName: string,
  [Item, ...others]: readonly Item[],
  before: RunRecord,
  booked: ReadonlyMap<string, number>,
): TransactWriteItem[] {
  const run: TransactWriteItem = {
    Put: {
      TableName,
      Item,
      ConditionExpression: '#version = :previous',
      ExpressionAttributeNames: { '#version': 'version' },
      ExpressionAttributeValues: { ':previous': { N: String(before.version) } },
    },
  };
  const months = [...booked].map(([month, usd]) => addToMonth(TableName, monthItemKey(before.team, month), usd));
  return [run, ...others.map((Item) => ({ Put: { TableName, Item } })), ...months];
}

const addToMonth = (TableName: string, Key: Item, usd: number): TransactWriteItem => ({
  Update: {
    TableName,
    Key,
    UpdateExpression: 'ADD #usd :usd',
    ExpressionAttributeNames: { '#usd': MONTH_USD_ATTRIBUTE },
    ExpressionAttributeValues: { ':usd': { N: usd.toFixed(6) } },
  },
});
