import {
  type AttributeValue,
  BatchGetItemCommand,
  DynamoDBClient,
  GetItemCommand,
  QueryCommand,
  TransactionCanceledException,
  type TransactWriteItem,
  TransactWriteItemsCommand,
} from '@aws-sdk/client-dynamodb';
import { mockClient } from '../../support/mocked-clients';

type Item = Record<string, AttributeValue>;
const idOf = (key: Item): string => `${key.runId?.S}|${key.item?.S}`;

/** The run table in memory, behind the SDK's client: conditions and indexes as the store uses them. */
export function fakeTable() {
  const items = new Map<string, Item>();
  const mock = mockClient(DynamoDBClient);
  let writes = 0;
  let leftOut: { runId: string; times: number | 'error' } = { runId: '', times: 0 };
  mock.on(GetItemCommand).callsFake((input) => ({ Item: items.get(idOf(input.Key)) }));
  mock.on(BatchGetItemCommand).callsFake(({ RequestItems }) => {
    const [[table, { Keys }]] = Object.entries(RequestItems) as [[string, { Keys: Item[] }]];
    if (Keys.length > 100 || new Set(Keys.map(idOf)).size < Keys.length) throw new Error('ValidationException');
    const out = leftOut.times === 0 ? [] : Keys.filter((key) => key.runId?.S === leftOut.runId);
    if (out.length > 0 && leftOut.times === 'error') throw new Error('table on fire');
    if (out.length > 0 && leftOut.times !== 'error') leftOut.times -= 1;
    const found = Keys.filter((key) => !out.includes(key)).map((key) => items.get(idOf(key)));
    return {
      Responses: { [table]: found.filter(Boolean) },
      ...(out.length > 0 && { UnprocessedKeys: { [table]: { Keys: out } } }),
    };
  });
  mock.on(TransactWriteItemsCommand).callsFake((input) => {
    const puts: NonNullable<TransactWriteItem['Put']>[] = input.TransactItems.map(
      (t: TransactWriteItem) => t.Put ?? { Item: added(t.Update) },
    );
    const reasons = puts.map((put) => (holds(put) ? {} : { Code: 'ConditionalCheckFailed' }));
    if (reasons.some((r) => 'Code' in r)) {
      throw new TransactionCanceledException({ message: 'cancelled', $metadata: {}, CancellationReasons: reasons });
    }
    for (const put of puts) if (put.Item) items.set(idOf(put.Item), put.Item);
    writes += 1;
    return {};
  });
  mock.on(QueryCommand).callsFake((input) => {
    const from = Number(input.ExclusiveStartKey?.place?.N ?? 0);
    const all = matching(input);
    const to = input.Limit === undefined ? all.length : from + input.Limit;
    return { Items: all.slice(from, to), ...(to < all.length && { LastEvaluatedKey: { place: { N: String(to) } } }) };
  });

  function holds({
    Item,
    ConditionExpression,
    ExpressionAttributeValues,
  }: NonNullable<TransactWriteItem['Put']>): boolean {
    const before = items.get(idOf(Item ?? {}));
    if (ConditionExpression === undefined) return true;
    if (ConditionExpression.startsWith('attribute_not_exists')) return before === undefined;
    return before?.version?.N === ExpressionAttributeValues?.[':previous']?.N;
  }

  /** The item after an update that adds to one number. */
  function added(update: TransactWriteItem['Update']): Item {
    const before = items.get(idOf(update?.Key ?? {})) ?? update?.Key ?? {};
    const name = update?.ExpressionAttributeNames?.['#usd'] ?? '';
    const usd = Number(before[name]?.N ?? 0) + Number(update?.ExpressionAttributeValues?.[':usd']?.N);
    return { ...before, [name]: { N: String(usd) } };
  }

  function matching(input: { IndexName?: string; ExpressionAttributeValues: Item; ScanIndexForward?: boolean }) {
    const values = input.ExpressionAttributeValues;
    const all = [...items.values()];
    if (input.IndexName === 'active-runs') return all.filter((i) => i.active?.S === values[':value']?.S);
    if (input.IndexName === 'team-runs') {
      const runs = all.filter((i) => i.team?.S === values[':value']?.S);
      return runs.sort((a, b) => ((a.createdAt?.S ?? '') < (b.createdAt?.S ?? '') ? 1 : -1));
    }
    const isRequested = (item = '') =>
      values[':from'] === undefined
        ? item.startsWith(values[':prefix']?.S ?? '')
        : item >= (values[':from'].S ?? '') && item <= (values[':to']?.S ?? '');
    return all
      .filter((i) => i.runId?.S === values[':run']?.S && isRequested(i.item?.S))
      .sort((a, b) => ((a.item?.S ?? '') < (b.item?.S ?? '') ? -1 : 1));
  }

  /** The next reads of several runs leave this one out, or fail where it is among them. */
  const leaveOut = (runId: string, times: number | 'error') => {
    leftOut = { runId, times };
  };
  return { client: new DynamoDBClient({ region: 'us-west-2' }), mock, items, leaveOut, writes: () => writes };
}
