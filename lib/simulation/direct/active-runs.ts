import type { Item } from '../../handlers/shared/items';
import { ACTIVE_QUERY } from '../../handlers/shared/run-store';
import type { RunRecord } from '../../lifecycle/record';
import { recordOfItem } from '../services/kept-document';
import type { DirectCalls } from './direct-work';

interface Page {
  Items?: Item[];
  LastEvaluatedKey?: Item;
}

/** Until a run is written, queries have the same answer. */
const records = new WeakMap<readonly Item[], readonly RunRecord[]>();

function recordsOf(items: readonly Item[]): readonly RunRecord[] {
  const known = records.get(items) ?? items.map(recordOfItem);
  records.set(items, known);
  return known;
}

/** Reads the runs that are not over, page by page, like RunStore.active. */
export function readActive<Deps extends { queueUrl: string }>(
  calls: DirectCalls<Deps>,
  TableName: string,
  then: (active: readonly RunRecord[]) => void,
  orElse?: (error: unknown) => void,
): void {
  let found: readonly RunRecord[] = [];
  const next = (ExclusiveStartKey?: Item) => {
    const read = ({ Items = [], LastEvaluatedKey }: Page) => {
      const records = recordsOf(Items);
      found = found.length === 0 ? records : [...found, ...records];
      if (LastEvaluatedKey) next(LastEvaluatedKey);
      else then(found);
    };
    calls.call('dynamodb:Query', { TableName, ...ACTIVE_QUERY, ExclusiveStartKey }, read, orElse);
  };
  next();
}
