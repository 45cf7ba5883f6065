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
  EVENT_ITEM_PREFIX,
  RUN_TABLE_PARTITION_KEY,
  RUN_TABLE_SORT_KEY,
  TEAM_INDEX,
  TEAM_INDEX_PARTITION_KEY,
} from '../../contracts/run-table';
import type { TimelineEvent } from '../../lifecycle/action';
import type { Attempt, RunRecord } from '../../lifecycle/record';
import {
  attemptItemOf,
  documentOf,
  eventItemOf,
  type Item,
  intentItem,
  intentKey,
  type RunIntent,
  requestItem,
  requestItemKey,
  runItem,
  runKey,
} from './items';
import { migrateIntent, migrateRecord } from './migrate';

/** A transaction may hold 100 items; more lines than this in one decision would be a mistake of ours. */
const MOST_EVENTS = 90;

/**
 * The run table. Every write is conditional: a new run on its id and request being free, a changed run on the version it was
 * read with. Reads of one run are consistent; the two indexes lag and are only lists of what to look at.
 */
export class RunStore {
  constructor(
    private readonly dynamodb: DynamoDBClient,
    private readonly tableName: string,
  ) {}

  async find(runId: string): Promise<RunRecord | undefined> {
    const item = await this.get(runKey(runId));
    return item && migrateRecord(documentOf<RunRecord>(item));
  }

  async findIntent(runId: string): Promise<RunIntent | undefined> {
    const item = await this.get(intentKey(runId));
    return item && migrateIntent(documentOf<RunIntent>(item));
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

  /** @returns false when somebody else has written the run since it was read */
  save(record: RunRecord, previousVersion: number, events: readonly TimelineEvent[]): Promise<boolean> {
    const run: TransactWriteItem = {
      Put: {
        TableName: this.tableName,
        Item: runItem(record),
        ConditionExpression: '#version = :previous',
        ExpressionAttributeNames: { '#version': 'version' },
        ExpressionAttributeValues: { ':previous': { N: String(previousVersion) } },
      },
    };
    const others = [
      ...(record.attempt ? [attemptItemOf(record.runId, record.attempt)] : []),
      ...events.slice(0, MOST_EVENTS).map((line, place) => eventItemOf(record.runId, record.version, place, line)),
    ];
    return this.write([run, ...others.map((Item) => ({ Put: { TableName: this.tableName, Item } }))]);
  }

  /** Runs that are not over, as the index shows them. */
  async active(): Promise<RunRecord[]> {
    const found = await this.query<RunRecord>({
      IndexName: ACTIVE_INDEX,
      KeyConditionExpression: '#key = :value',
      ExpressionAttributeNames: { '#key': ACTIVE_INDEX_PARTITION_KEY },
      ExpressionAttributeValues: { ':value': { S: ACTIVE_VALUE } },
    });
    return found.map(migrateRecord);
  }

  /** The newest runs of a team, newest first. */
  async ofTeam(team: string, limit: number): Promise<RunRecord[]> {
    const { Items } = await this.dynamodb.send(
      new QueryCommand({
        TableName: this.tableName,
        IndexName: TEAM_INDEX,
        KeyConditionExpression: '#key = :value',
        ExpressionAttributeNames: { '#key': TEAM_INDEX_PARTITION_KEY },
        ExpressionAttributeValues: { ':value': { S: team } },
        ScanIndexForward: false,
        Limit: limit,
      }),
    );
    return (Items ?? []).map((item) => migrateRecord(documentOf<RunRecord>(item)));
  }

  /** All attempts of a run, first to last. */
  attempts(runId: string): Promise<Attempt[]> {
    return this.query(this.itemsOf(runId, ATTEMPT_ITEM_PREFIX));
  }

  /** All decisions on a run, first to last. */
  timeline(runId: string): Promise<TimelineEvent[]> {
    return this.query(this.itemsOf(runId, EVENT_ITEM_PREFIX));
  }

  private itemsOf(runId: string, prefix: string): Partial<QueryCommandInput> {
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

  private async query<T>(input: Partial<QueryCommandInput>): Promise<T[]> {
    const found: T[] = [];
    const pages = paginateQuery({ client: this.dynamodb }, { TableName: this.tableName, ...input });
    for await (const page of pages) found.push(...(page.Items ?? []).map((item) => documentOf<T>(item)));
    return found;
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

function isLostRace(error: unknown): boolean {
  if (!(error instanceof TransactionCanceledException)) return false;
  const reasons = error.CancellationReasons ?? [];
  return reasons.some((r) => r.Code === 'ConditionalCheckFailed' || r.Code === 'TransactionConflict');
}
