import type { TransactWriteItem } from '@aws-sdk/client-dynamodb';
import type { TimelineEvent } from '../../lifecycle/action';
import type { RunRecord } from '../../lifecycle/record';
import { attemptItemOf, eventItemOf, type Item, runItem, type Written } from './items';

/** A transaction may hold 100 items; more lines than this in one decision would be a mistake of ours. */
const MOST_EVENTS = 90;

/** A changed run, and the lines of the timeline that say why. */
interface RunChange {
  record: RunRecord;
  events: readonly TimelineEvent[];
}

/**
 * The items of a changed run: itself, its attempt, and lines of the timeline.
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

/** The writes of a changed run, which stands first: only where it has the version that it was read with. */
export function writesOf(
  TableName: string,
  [Item, ...others]: readonly Item[],
  previousVersion: number,
): TransactWriteItem[] {
  const run: TransactWriteItem = {
    Put: {
      TableName,
      Item,
      ConditionExpression: '#version = :previous',
      ExpressionAttributeNames: { '#version': 'version' },
      ExpressionAttributeValues: { ':previous': { N: String(previousVersion) } },
    },
  };
  return [run, ...others.map((Item) => ({ Put: { TableName, Item } }))];
}
