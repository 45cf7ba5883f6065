import type { QueryCommandInput } from '@aws-sdk/client-dynamodb';
import type { Item } from './expression';

/** An answer holds at most 1 MB. */
const PAGE_BYTES = 1_000_000;

/** One page of an answer: as many items as `Limit` and 1 MB allow. */
export function page(
  items: readonly Item[],
  { Limit = Number.POSITIVE_INFINITY, ExclusiveStartKey }: QueryCommandInput,
) {
  const start = Number(ExclusiveStartKey?.place?.N ?? 0);
  const all = Math.min(items.length, start + Limit);
  const end = endOf(items, { start, all });
  return {
    Items: start === 0 && end === items.length ? items : items.slice(start, end),
    ...(end < items.length && { LastEvaluatedKey: { place: { N: String(end) } } }),
    $metadata: {},
  };
}

/** Index at which 1 MB is reached. */
function endOf(items: readonly Item[], { start, all }: { start: number; all: number }): number {
  let bytes = 0;
  let end = start;
  while (end < all && bytes < PAGE_BYTES) {
    bytes += (items[end]?.document?.S?.length ?? 0) + 300;
    end += 1;
  }
  return end;
}
