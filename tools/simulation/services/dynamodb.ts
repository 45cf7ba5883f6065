import {
  type BatchGetItemCommandInput,
  type GetItemCommandInput,
  type PutItemCommandInput,
  type QueryCommandInput,
  TransactionCanceledException,
  type TransactWriteItemsCommandInput,
} from '@aws-sdk/client-dynamodb';
import { ACTIVE_INDEX, ITEM, RUN_TABLE, TEAM_INDEX } from '../../../lib/core/contracts/storage';
import type { SimMs } from '../core/clock';
import type { Invocation } from '../core/invocation';
import type { Operations } from '../core/operation';
import { serviceError } from '../core/service-error';
import { type ExpressionNames, holds, type Item } from './expression';
import { page } from './page';

interface Version {
  at: SimMs;
  /** Undefined = deleted. */
  item: Item | undefined;
}
interface Stored {
  partition: string;
  sort: string;
  item: Item | undefined;
  /** Newest last; kept as long as an index read may lag. */
  versions: Version[];
}

const INDEXES: Readonly<Record<string, readonly [partition: string, sort: string]>> = {
  [ACTIVE_INDEX.name]: [ACTIVE_INDEX.partitionKey, ACTIVE_INDEX.sortKey],
  [TEAM_INDEX.name]: [TEAM_INDEX.partitionKey, TEAM_INDEX.sortKey],
};

const INDEX_KEYS = Object.entries(INDEXES).map(([name, [key, sort]]) => ({ name, key, sort }));

/** Items that have the keys of an index, in its order; other items never appear in it. */
interface Indexed {
  readonly all: Set<Stored>;
  /** The same in the order of the sort key; undefined after an item was added or its key changed. */
  inOrder: Stored[] | undefined;
  /** The items that the last query without a lag found; undefined after a RUN item was written. */
  found: { query: QueryCommandInput; items: Item[] } | undefined;
}

type AddUpdate = { Key?: Item; UpdateExpression?: string } & ExpressionNames;

/** https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html: 400 KB with the names of attributes and the keys. */
const MAX_ITEM_BYTES = 400 * 1024 - 1024;
/** DynamoDB deletes an expired item "within a few days"; until then reads still return it. */
const EXPIRY_DELAY_MS = 6 * 3_600_000;
const QUERY_PARAMETERS = [
  'TableName',
  'IndexName',
  'ConsistentRead',
  'KeyConditionExpression',
  'ExpressionAttributeNames',
  'ExpressionAttributeValues',
  'ExclusiveStartKey',
  'Limit',
  'ScanIndexForward',
];

/** What the table needs from the world, and reports to it. */
export interface TableHooks {
  now(): SimMs;
  /** The services' own clock, epoch seconds; `expiresAt` is compared with it. */
  epochSeconds(): number;
  /** The current lag of index reads. */
  indexLagMs(): number;
  /** The longest lag of the whole scenario: older versions are never read. */
  mostIndexLagMs: number;
  /** A RUN item was written. */
  onRun(item: Item, invocation: Invocation | undefined): void;
}

/** The run table with its two sparse indexes: conditions and transactions take effect immediately, index reads may lag, items expire. */
export class SimTable {
  private readonly partitions = new Map<string, Map<string, Stored>>();
  private readonly indexed = new Map<string, Indexed>(
    INDEX_KEYS.map(({ name }) => [name, { all: new Set(), inOrder: undefined, found: undefined }]),
  );
  private readonly now: () => SimMs;

  constructor(private readonly hooks: TableHooks) {
    this.now = hooks.now;
  }

  readonly operations: Operations = {
    GetItem: {
      latencyMs: 4,
      knows: ['TableName', 'Key', 'ConsistentRead'],
      key: (input: GetItemCommandInput) => input.Key?.[RUN_TABLE.partitionKey]?.S,
      run: ({ Key = {} }: GetItemCommandInput) => ({ Item: this.find(Key), $metadata: {} }),
    },
    BatchGetItem: {
      latencyMs: 6,
      knows: ['RequestItems'],
      run: ({ RequestItems = {} }: BatchGetItemCommandInput) => {
        const found = Object.entries(RequestItems).map(([table, { Keys = [] }]) => [table, this.findAll(Keys)]);
        return { Responses: Object.fromEntries(found), UnprocessedKeys: {}, $metadata: {} };
      },
    },
    PutItem: {
      latencyMs: 6,
      writes: true,
      key: (input: PutItemCommandInput) => input.Item?.[RUN_TABLE.partitionKey]?.S,
      run: (input: PutItemCommandInput, invocation) => {
        if (!this.isAllowed(input)) throw conditionFailed();
        this.put(input.Item ?? {}, invocation);
        return {};
      },
    },
    TransactWriteItems: {
      latencyMs: 10,
      knows: ['TransactItems', 'ClientRequestToken'],
      writes: true,
      hasToken: true,
      key: ({ TransactItems = [] }: TransactWriteItemsCommandInput) =>
        TransactItems[0]?.Put?.Item?.[RUN_TABLE.partitionKey]?.S,
      run: (input: TransactWriteItemsCommandInput, invocation) => this.transact(input, invocation),
    },
    Query: {
      latencyMs: 8,
      knows: QUERY_PARAMETERS,
      key: (input: QueryCommandInput) => input.IndexName ?? Object.values(input.ExpressionAttributeValues ?? {})[0]?.S,
      run: (input: QueryCommandInput) => this.query(input),
    },
  };

  /** An item as returned by a consistent read. */
  find(key: Item): Item | undefined {
    const stored = this.partitions.get(key[RUN_TABLE.partitionKey]?.S ?? '')?.get(key[RUN_TABLE.sortKey]?.S ?? '');
    return stored && this.alive(stored.item);
  }

  /**
   * Items as returned by one consistent batch read, with the limits of
   * https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchGetItem.html
   */
  private findAll(keys: readonly Item[]): Item[] {
    const isLong = keys.length > 100;
    if (isLong) throw serviceError('ValidationException', 'Too many items requested for the BatchGetItem call', 400);
    const texts = keys.map((key) => JSON.stringify([key[RUN_TABLE.partitionKey], key[RUN_TABLE.sortKey]]));
    if (new Set(texts).size < texts.length)
      throw serviceError('ValidationException', 'Provided list of item keys contains duplicates', 400);
    return keys.map((key) => this.find(key)).filter((item) => item !== undefined);
  }

  /** Every item of a run. */
  itemsOf(runId: string): Item[] {
    return [...(this.partitions.get(runId)?.values() ?? [])].flatMap(({ item }) => (item ? [item] : []));
  }

  /** Writes an item unconditionally, as an older version of the functions would have left it. */
  overwrite(item: Item): void {
    this.put(item, undefined);
  }

  private alive(item: Item | undefined): Item | undefined {
    const expiresAt = item?.[RUN_TABLE.expiresAt]?.N;
    if (expiresAt === undefined) return item;
    return this.hooks.epochSeconds() > Number(expiresAt) + EXPIRY_DELAY_MS / 1000 ? undefined : item;
  }

  private isAllowed(put: { Item?: Item; ConditionExpression?: string } & ExpressionNames): boolean {
    return put.ConditionExpression === undefined || holds(put.ConditionExpression, this.find(put.Item ?? {}), put);
  }

  private transact({ TransactItems = [] }: TransactWriteItemsCommandInput, invocation: Invocation): unknown {
    if (TransactItems.length > 100) throw serviceError('ValidationException', 'more than 100 items', 400);
    const puts = TransactItems.map(({ Put, Update }) => Put ?? { Item: this.added(Update ?? {}) });
    const reasons = puts.map((put) => (this.isAllowed(put) ? { Code: 'None' } : { Code: 'ConditionalCheckFailed' }));
    if (reasons.some(({ Code }) => Code !== 'None')) {
      const message = `Transaction cancelled [${reasons.map((r) => r.Code).join(', ')}]`;
      const $metadata = { httpStatusCode: 400 };
      throw new TransactionCanceledException({ message, $metadata, CancellationReasons: reasons });
    }
    for (const put of puts) this.put(put.Item ?? {}, invocation);
    return {};
  }

  /** The item after an update that adds to one number, the only kind that the functions write. */
  private added({ Key = {}, UpdateExpression, ExpressionAttributeNames, ExpressionAttributeValues }: AddUpdate): Item {
    const [, name = '', value = ''] = /^ADD (#\w+) (:\w+)$/.exec(UpdateExpression ?? '') ?? [];
    const attribute = ExpressionAttributeNames?.[name];
    const more = ExpressionAttributeValues?.[value]?.N;
    if (attribute === undefined || more === undefined)
      throw new Error(`the simulation knows updates that add to a number, got ${UpdateExpression}`);
    const before = this.find(Key) ?? Key;
    return { ...before, [attribute]: { N: String(Number(before[attribute]?.N ?? 0) + Number(more)) } };
  }

  private put(item: Item, invocation: Invocation | undefined): void {
    if ((item.document?.S?.length ?? 0) > MAX_ITEM_BYTES)
      throw serviceError('ValidationException', 'Item size has exceeded the maximum allowed size', 400);
    const partition = item[RUN_TABLE.partitionKey]?.S ?? '';
    const sort = item[RUN_TABLE.sortKey]?.S ?? '';
    let items = this.partitions.get(partition);
    if (!items) {
      items = new Map();
      this.partitions.set(partition, items);
    }
    let stored = items.get(sort);
    if (!stored) {
      stored = { partition, sort, item: undefined, versions: [] };
      items.set(sort, stored);
    }
    const before = stored.item;
    stored.item = item;
    if (sort === ITEM.run) {
      this.index(stored, before);
      stored.versions.push({ at: this.now(), item });
      if (stored.versions.length > 1) this.forget(stored.versions);
      this.hooks.onRun(item, invocation);
    }
  }

  /** Only RUN items appear in the indexes. */
  private index(stored: Stored, before: Item | undefined): void {
    for (const { name, key, sort } of INDEX_KEYS) {
      const index = this.indexed.get(name);
      if (!index) continue;
      index.found = undefined;
      if (stored.item?.[key] === undefined) continue;
      if (index.all.has(stored) && before?.[sort]?.S === stored.item[sort]?.S) continue;
      index.all.add(stored);
      index.inOrder = undefined;
    }
  }

  private forget(versions: Version[]): void {
    const oldest = this.now() - this.hooks.mostIndexLagMs;
    while (versions.length > 1 && (versions[1] as Version).at <= oldest) versions.shift();
  }

  private query(input: QueryCommandInput): unknown {
    const found = input.IndexName === undefined ? this.inTable(input) : this.inIndex(input.IndexName, input);
    return page(found, input);
  }

  private inTable(input: QueryCommandInput): Item[] {
    const expression = input.KeyConditionExpression ?? '';
    const partition = Object.values(input.ExpressionAttributeValues ?? {})[0]?.S ?? '';
    const matching: Item[] = [];
    for (const { item } of this.partitions.get(partition)?.values() ?? []) {
      if (item && holds(expression, item, input) && this.alive(item)) matching.push(item);
    }
    return sorted(matching, RUN_TABLE.sortKey, input);
  }

  private inIndex(name: string, input: QueryCommandInput): Item[] {
    const keys = INDEXES[name];
    const index = this.indexed.get(name);
    if (!keys || !index)
      throw serviceError('ValidationException', `The table does not have the specified index: ${name}`, 400);
    const lag = this.hooks.indexLagMs();
    const known = index.found;
    if (lag === 0 && known && asksForSame(known.query, input)) return known.items;
    const [key, sort] = keys;
    index.inOrder ??= [...index.all].sort(byKey(sort));
    const items: Item[] = [];
    for (const stored of index.inOrder) {
      const item = seenAt(stored, this.now() - lag);
      if (item?.[key] !== undefined && holds(input.KeyConditionExpression ?? '', item, input)) items.push(item);
    }
    if (input.ScanIndexForward === false) items.reverse();
    if (lag === 0) index.found = { query: input, items };
    return items;
  }
}

/** Whether two queries of an index find the same items in the same order. Callers share the parameters of a repeated query. */
const asksForSame = (a: QueryCommandInput, b: QueryCommandInput): boolean =>
  a.KeyConditionExpression === b.KeyConditionExpression &&
  a.ExpressionAttributeNames === b.ExpressionAttributeNames &&
  a.ExpressionAttributeValues === b.ExpressionAttributeValues &&
  a.ScanIndexForward === b.ScanIndexForward;

/** Comparator by a key that all versions of an item share. */
function byKey(key: string): (a: Stored, b: Stored) => number {
  const text = ({ item }: Stored) => item?.[key]?.S ?? '';
  return (a, b) => (text(a) < text(b) ? -1 : text(a) > text(b) ? 1 : 0);
}

function seenAt({ versions }: Stored, time: SimMs): Item | undefined {
  for (let i = versions.length - 1; i >= 0; i--) {
    const version = versions[i] as Version;
    if (version.at <= time) return version.item;
  }
  return undefined;
}

function sorted(items: Item[], key: string, { ScanIndexForward = true }: QueryCommandInput): Item[] {
  const text = (item: Item) => item[key]?.S ?? '';
  const order = ScanIndexForward ? 1 : -1;
  return items.sort((a, b) => (text(a) < text(b) ? -order : text(a) > text(b) ? order : 0));
}

const conditionFailed = () => serviceError('ConditionalCheckFailedException', 'The conditional request failed', 400);
