import { RUN_TABLE_PARTITION_KEY, RUN_TABLE_SORT_KEY, TEAM_INDEX_PARTITION_KEY } from '../../contracts/run-table';
import type { RunRecord } from '../../lifecycle/record';
import { type Item, textOf } from './items';
import { remember } from './remember';
import { findQueueDocument, readIntent, readRecord, UnreadableItem } from './stored';

/** Parses the record in a document of the table. The result is shared and must not be changed. */
export const recordOf = remember(readRecord);

/** The run id of an item. */
export const idOf = (item: Item): string => item[RUN_TABLE_PARTITION_KEY]?.S ?? '';

/** Reads an item. Throws UnreadableItem when its content is not what this version or an earlier one writes. */
export function readItem<T>(item: Item, read: (item: Item) => T): T {
  try {
    return read(item);
  } catch (error) {
    const { message } = error as Error;
    const name = item[RUN_TABLE_SORT_KEY]?.S ?? '';
    throw new UnreadableItem(idOf(item), item[TEAM_INDEX_PARTITION_KEY]?.S ?? '', name, message.slice(0, 300));
  }
}

/** The record of a RUN item, which belongs to the run and the team that the item names. */
export function recordIn(item: Item): RunRecord {
  const record = recordOf(textOf(item));
  if (record.runId === idOf(item) && record.team === item[TEAM_INDEX_PARTITION_KEY]?.S) return record;
  throw new Error('its run or team is not that of the item');
}

/** Parses the intent in a document of the table. The result is shared and must not be changed. */
export const intentOf = remember(readIntent);
/** Passes of the queue read the same document repeatedly while nothing starts or ends. The result is shared and must not be changed. */
export const queueOf = remember(findQueueDocument, 10);

/** Runs by id, from RUN items; those that cannot be read are left out. */
export const runsIn = (items: readonly Item[]): Map<string, RunRecord> =>
  new Map(readable(items, [], (item) => [idOf(item), recordIn(item)] as const));

/** Reads items, and adds those that cannot be read to `unreadable`. */
export function readable<T>(items: readonly Item[], unreadable: UnreadableItem[], read: (item: Item) => T): T[] {
  return items.flatMap((item) => {
    try {
      return [readItem(item, read)];
    } catch (error) {
      unreadable.push(error as UnreadableItem);
      return [];
    }
  });
}
