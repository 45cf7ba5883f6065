import type { Item } from '../../handlers/shared/items';
import { ACTIVE_QUERY } from '../../handlers/shared/run-store';
import type { RunRecord } from '../../lifecycle/record';
import { recordOfItem } from '../services/kept-document';
import type { DirectCalls } from './direct-work';

interface Page {
  Items?: Item[];
  LastEvaluatedKey?: Item;
}

/** Reads the runs that are not over, page by page, like RunStore.active. */
export function readActive<Deps extends { queueUrl: string }>(
  calls: DirectCalls<Deps>,
  TableName: string,
  then: (active: RunRecord[]) => void,
  orElse?: (error: unknown) => void,
): void {
  const found: RunRecord[] = [];
  const next = (ExclusiveStartKey?: Item) => {
    const read = ({ Items = [], LastEvaluatedKey }: Page) => {
      for (const item of Items) found.push(recordOfItem(item));
      if (LastEvaluatedKey) next(LastEvaluatedKey);
      else then(found);
    };
    calls.call('dynamodb:Query', { TableName, ...ACTIVE_QUERY, ExclusiveStartKey }, read, orElse);
  };
  next();
}
