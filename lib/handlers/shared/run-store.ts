import {
  type DynamoDBClient,
  GetItemCommand,
  paginateQuery,
  QueryCommand,
  type QueryCommandInput,
  TransactionCanceledException,
  type TransactWriteItem,
  TransactWriteItemsCommand,
} from '@aws-sdk/client-dynamodb';
import {
  ACTIVE_INDEX,
  ACTIVE_INDEX_PARTITION_KEY,
  ACTIVE_VALUE,
  ATTEMPT_ITEM_PREFIX,
  CLOSED_ATTRIBUTE,
  EVENT_ITEM_PREFIX,
  RUN_TABLE_PARTITION_KEY,
  RUN_TABLE_SORT_KEY,
  TEAM_INDEX,
  TEAM_INDEX_PARTITION_KEY,
} from '../../contracts/run-table';
import type { TimelineEvent } from '../../lifecycle/action';
import type { Attempt, RunRecord } from '../../lifecycle/record';
import {
  closedKey,
  documentOf,
  eventItemOf,
  type Item,
  intentItem,
  intentKey,
  type QueueDocument,
  queueItem,
  queueKey,
  quotasItem,
  quotasKey,
  type RunIntent,
  requestItem,
  requestItemKey,
  runItem,
  runKey,
  textOf,
} from './items';
import { migrateIntent, migrateRecord } from './migrate';
import { remember } from './remember';
import { itemsOf, writesOf } from './run-writes';

/** Intents that a process keeps, about 15 KB each; the oldest goes first. */
const MOST_INTENTS = 2000;

/** The record in a document of the table. It is shared and must not be changed. */
export const recordOf = remember((text) => migrateRecord(JSON.parse(text) as RunRecord));

/** Runs as the last list of a process had them, by id. */
type Listed = ReadonlyMap<string, { text: string; record: RunRecord }>;

/** Whose item it is. */
export const idOf = (item: Item): string => item[RUN_TABLE_PARTITION_KEY]?.S ?? '';

/** The records of a list. Of a thousand active runs most are as they were in the list before, and are not read again. */
function recordsOf(items: readonly Item[], before: Listed): { records: RunRecord[]; listed: Listed } {
  const listed = new Map<string, { text: string; record: RunRecord }>();
  const records = items.map((item) => {
    const text = textOf(item);
    const id = idOf(item);
    const known = before.get(id);
    const now = known?.text === text ? known : { text, record: recordOf(text) };
    listed.set(id, now);
    return now.record;
  });
  return { records, listed };
}

const intentOf = remember((text) => migrateIntent(JSON.parse(text) as RunIntent));
/** Passes of the queue read the same document repeatedly while nothing starts or ends. It is shared and must not be changed. */
const queueOf = remember((text) => JSON.parse(text) as QueueDocument, 10);

/**
 * The run table. Every write is conditional: a new run on its id and request being free, a changed run on the version it was
 * read with. Reads of one run are consistent; the two indexes lag and are only lists of what to look at.
 */
export class RunStore {
  private readonly intents = new Map<string, RunIntent>();
  private listed: Listed = new Map();

  constructor(
    readonly dynamodb: DynamoDBClient,
    readonly tableName: string,
  ) {}

  async find(runId: string): Promise<RunRecord | undefined> {
    const item = await this.get(runKey(runId));
    return item && recordOf(textOf(item));
  }

  /** What the run was made from, where the process has read it. */
  knownIntent(runId: string): RunIntent | undefined {
    return this.intents.get(runId);
  }

  /** What the run was made from. It is written once, so that a process reads it once. */
  async findIntent(runId: string): Promise<RunIntent | undefined> {
    const known = this.intents.get(runId);
    if (known) return known;
    const item = await this.get(intentKey(runId));
    if (!item) return undefined;
    const intent = intentOf(textOf(item));
    this.intents.set(runId, intent);
    if (this.intents.size > MOST_INTENTS) this.intents.delete(this.intents.keys().next().value as string);
    return intent;
  }

  /** The run that an earlier start with this request id made. */
  async findRequest(team: string, clientRequestId: string): Promise<string | undefined> {
    return (await this.get(requestItemKey(team, clientRequestId)))?.madeRun?.S;
  }

  /** @returns false when the run id or the request id is taken */
  create(record: RunRecord, intent: RunIntent, clientRequestId: string, line: TimelineEvent): Promise<boolean> {
    const items = [
      runItem(record),
      intentItem(record.runId, intent),
      requestItem(record.team, clientRequestId, record.runId),
      eventItemOf(record.runId, record.version, 0, line),
    ];
    const isFree = `attribute_not_exists(${RUN_TABLE_PARTITION_KEY})`;
    return this.write(items.map((Item) => ({ Put: { TableName: this.tableName, Item, ConditionExpression: isFree } })));
  }

  /** @returns false if another invocation has written the run since it was read */
  save(record: RunRecord, previousVersion: number, events: readonly TimelineEvent[]): Promise<boolean> {
    const { run, others } = itemsOf({ record, events });
    recordOf.keep(textOf(run), record);
    return this.write(writesOf(this.tableName, [run, ...others], previousVersion));
  }

  /** Whether the stack is being deleted. */
  async isClosed(): Promise<boolean> {
    return (await this.get(closedKey))?.[CLOSED_ATTRIBUTE]?.BOOL === true;
  }

  /** What the queue remembers; undefined before its first pass. */
  async findQueue(): Promise<QueueDocument | undefined> {
    const item = await this.get(queueKey);
    return item && queueDocumentOf(item);
  }

  /** Only a pass of the queue writes it, and passes come one after the other. */
  async saveQueue(queue: QueueDocument): Promise<void> {
    await this.write([{ Put: { TableName: this.tableName, Item: queueItem(queue) } }]);
  }

  /** Instance quotas for which a notice was sent, and whether their use has fallen since: the state of quota-notice.ts. */
  async findToldQuotas(): Promise<string[]> {
    const item = await this.get(quotasKey);
    return item ? documentOf<string[]>(item) : [];
  }

  /** Only a tick writes it, after it has told. */
  async saveToldQuotas(names: readonly string[]): Promise<void> {
    await this.write([{ Put: { TableName: this.tableName, Item: quotasItem(names) } }]);
  }

  /** Runs that are not over, as the index shows them. */
  async active(): Promise<RunRecord[]> {
    const { records, listed } = recordsOf(await this.query(ACTIVE_QUERY), this.listed);
    this.listed = listed;
    return records;
  }

  /** The newest runs of a team, newest first. */
  async ofTeam(team: string, limit: number): Promise<RunRecord[]> {
    const items = await this.query(
      {
        IndexName: TEAM_INDEX,
        KeyConditionExpression: '#key = :value',
        ExpressionAttributeNames: { '#key': TEAM_INDEX_PARTITION_KEY },
        ExpressionAttributeValues: { ':value': { S: team } },
        ScanIndexForward: false,
        Limit: limit,
      },
      limit,
    );
    return items.map((item) => recordOf(textOf(item)));
  }

  /** All attempts of a run, first to last. */
  async attempts(runId: string): Promise<Attempt[]> {
    return (await this.query(this.partOf(runId, ATTEMPT_ITEM_PREFIX))).map((item) => documentOf<Attempt>(item));
  }

  /** All decisions on a run, first to last. */
  async timeline(runId: string): Promise<TimelineEvent[]> {
    return (await this.query(this.partOf(runId, EVENT_ITEM_PREFIX))).map((item) => documentOf<TimelineEvent>(item));
  }

  /**
   * Decisions on a run from a place on, first to last, each with its own place.
   * @param from a time (then from it on), or the place of a line (then after it); empty = from the first
   */
  async timelinePage(runId: string, from: string, limit: number): Promise<{ cursor: string; line: TimelineEvent }[]> {
    const { Items } = await this.dynamodb.send(
      new QueryCommand({
        TableName: this.tableName,
        ConsistentRead: true,
        KeyConditionExpression: '#run = :run AND #item BETWEEN :from AND :to',
        ExpressionAttributeNames: { '#run': RUN_TABLE_PARTITION_KEY, '#item': RUN_TABLE_SORT_KEY },
        ExpressionAttributeValues: {
          ':run': { S: runId },
          // The character after the last of a place comes before every longer one.
          ':from': { S: `${EVENT_ITEM_PREFIX}${from.includes('#') ? `${from}!` : from}` },
          ':to': { S: `${EVENT_ITEM_PREFIX}~` },
        },
        Limit: limit,
      }),
    );
    return (Items ?? []).map((item) => ({
      cursor: (item[RUN_TABLE_SORT_KEY]?.S ?? '').slice(EVENT_ITEM_PREFIX.length),
      line: documentOf<TimelineEvent>(item),
    }));
  }

  private partOf(runId: string, prefix: string): Partial<QueryCommandInput> {
    return {
      ConsistentRead: true,
      KeyConditionExpression: '#run = :run AND begins_with(#item, :prefix)',
      ExpressionAttributeNames: { '#run': RUN_TABLE_PARTITION_KEY, '#item': RUN_TABLE_SORT_KEY },
      ExpressionAttributeValues: { ':run': { S: runId }, ':prefix': { S: prefix } },
    };
  }

  private async get(Key: Item): Promise<Item | undefined> {
    const command = new GetItemCommand({ TableName: this.tableName, Key, ConsistentRead: true });
    return (await this.dynamodb.send(command)).Item;
  }

  /** @param most items that are wanted; a page ends at 1 MB too. @default - all */
  private async query(input: Partial<QueryCommandInput>, most = Number.POSITIVE_INFINITY): Promise<Item[]> {
    const found: Item[] = [];
    const pages = paginateQuery({ client: this.dynamodb }, { TableName: this.tableName, ...input });
    for await (const page of pages) {
      found.push(...(page.Items ?? []));
      if (found.length >= most) break;
    }
    return found.slice(0, most);
  }

  private async write(TransactItems: TransactWriteItem[]): Promise<boolean> {
    try {
      await this.dynamodb.send(new TransactWriteItemsCommand({ TransactItems }));
      return true;
    } catch (error) {
      if (isLostRace(error)) return false;
      throw error;
    }
  }
}

/** The content of the item of the queue. It is shared and must not be changed. */
export const queueDocumentOf = (item: Item): QueueDocument => queueOf(textOf(item));

/** What asks for the runs that are not over. */
export const ACTIVE_QUERY: Partial<QueryCommandInput> = {
  IndexName: ACTIVE_INDEX,
  KeyConditionExpression: '#key = :value',
  ExpressionAttributeNames: { '#key': ACTIVE_INDEX_PARTITION_KEY },
  ExpressionAttributeValues: { ':value': { S: ACTIVE_VALUE } },
};

function isLostRace(error: unknown): boolean {
  if (!(error instanceof TransactionCanceledException)) return false;
  const reasons = error.CancellationReasons ?? [];
  return reasons.some((r) => r.Code === 'ConditionalCheckFailed' || r.Code === 'TransactionConflict');
}
