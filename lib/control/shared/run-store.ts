import {
  type DynamoDBClient,
  GetItemCommand,
  paginateQuery,
  QueryCommand,
  type QueryCommandInput,
  type TransactionCanceledException,
  type TransactWriteItem,
  TransactWriteItemsCommand,
} from '@aws-sdk/client-dynamodb';
import { ENV } from '../../core/contracts/launcher';
import { requireEnv } from '../../core/contracts/names';
import { ACTIVE_INDEX, ITEM, RUN_TABLE, TEAM_INDEX } from '../../core/contracts/storage';
import { bookedUsd } from '../../core/lifecycle/accounting/month-spend';
import type { TimelineEvent } from '../../core/lifecycle/action';
import type { GpuEvidence } from '../../core/lifecycle/health/known-gpus';
import type { Attempt, RunRecord } from '../../core/lifecycle/record';
import { BoundedMap, remember } from './bounded-map';
import {
  changedItems,
  documentItem,
  environmentKey,
  eventItemOf,
  expiring,
  expiryOf,
  gpuItem,
  type Item,
  intentKey,
  itemsOf,
  monthItemKey,
  type RunIntent,
  requestItem,
  requestItemKey,
  runItem,
  runKey,
  textOf,
  writesOf,
} from './items';
import {
  findAttempt,
  findDigests,
  findGpuEvidence,
  findLine,
  findNames,
  findQueueDocument,
  orUnreadable,
  type QueueDocument,
  readIntent,
  readRecord,
  UnreadableItem,
} from './stored';

/** Runs of a team in one page of a search. */
const TEAM_PAGE = 200;
/** Number of intents that a process keeps, about 15 KB each. */
const MAX_INTENTS = 2000;

/** Number of runs of which a process keeps the earlier attempts, about 2 KB each. */
const MAX_EARLIER = 1000;

/** Number of items in one transaction, which may have 4 MB. */
const MAX_EXPIRING = 25;

/** Number of records that a process keeps, about 4 KB each: of the active runs, most are the same in the next listing. */
const MAX_RECORDS = 4000;

/** Parses the record in a document of the table. The result is shared and must not be changed. */
export const recordOf = remember(readRecord, MAX_RECORDS);

/** The run id of an item. */
export const idOf = (item: Item): string => item[RUN_TABLE.partitionKey]?.S ?? '';

/** Reads an item. Throws UnreadableItem when its content is not what this version or an earlier one writes. */
function readItem<T>(item: Item, read: (item: Item) => T): T {
  try {
    return read(item);
  } catch (error) {
    const { message } = error as Error;
    const name = item[RUN_TABLE.sortKey]?.S ?? '';
    throw new UnreadableItem(idOf(item), item[TEAM_INDEX.partitionKey]?.S ?? '', name, message.slice(0, 300));
  }
}

/** The record of a RUN item, which belongs to the run and the team that the item names. */
function recordIn(item: Item): RunRecord {
  const record = recordOf(textOf(item));
  if (record.runId === idOf(item) && record.team === item[TEAM_INDEX.partitionKey]?.S) return record;
  throw new Error('its run or team is not that of the item');
}

const intentOf = remember(readIntent);
/** Passes of the queue read the same document repeatedly while nothing starts or ends. The result is shared and must not be changed. */
const queueOf = remember(findQueueDocument, 10);

/**
 * The run table. Every write is conditional: a new run requires that its id and request id are unused, a changed run requires the version
 * with which it was read. Reads of one run are consistent; the two indexes are eventually consistent and only list candidates.
 */
export class RunStore {
  /** RUN items that the last listing of active runs could not read. */
  unreadable: readonly UnreadableItem[] = [];
  private readonly intents = new BoundedMap<RunIntent>(MAX_INTENTS);
  private readonly earlier = new BoundedMap<Attempt[]>(MAX_EARLIER);

  constructor(
    readonly dynamodb: DynamoDBClient,
    readonly tableName: string,
    /** How long the items of a run that is over are kept. @default - indefinitely */
    private readonly retentionDays = 0,
  ) {}

  /** The table that the environment variables of a function name. Throws when its name is missing. */
  static fromEnvironment(dynamodb: DynamoDBClient, env: NodeJS.ProcessEnv): RunStore {
    return new RunStore(dynamodb, requireEnv(env, ENV.runTable), Number(env[ENV.runRetentionDays] ?? 0));
  }

  /** The run with that id. Throws UnreadableItem when its item cannot be read. */
  async find(runId: string): Promise<RunRecord | undefined> {
    const item = await this.get(runKey(runId));
    return item && readItem(item, recordIn);
  }

  /** A run, or its item if this version cannot read it. */
  findOrUnreadable(runId: string): Promise<RunRecord | UnreadableItem | undefined> {
    return orUnreadable(this.find(runId));
  }

  /** The intent of a run. It never changes, so a process reads it once. Throws UnreadableItem when its item cannot be read. */
  async findIntent(runId: string): Promise<RunIntent | undefined> {
    const known = this.intents.get(runId);
    if (known) return known;
    const item = await this.get(intentKey(runId));
    if (!item) return undefined;
    const intent = readItem(item, (it) => intentOf(textOf(it)));
    this.intents.set(runId, intent, textOf(item).length);
    return intent;
  }

  /** The run that an earlier start with this request id created. */
  async findRequest(team: string, clientRequestId: string): Promise<string | undefined> {
    return (await this.get(requestItemKey(team, clientRequestId)))?.madeRun?.S;
  }

  /** @returns false when the run id or the request id is already used */
  create(record: RunRecord, intent: RunIntent, clientRequestId: string, line: TimelineEvent): Promise<boolean> {
    const items = [
      runItem(record),
      documentItem(intentKey(record.runId), intent),
      requestItem(record.team, clientRequestId, record.runId),
      eventItemOf(record.runId, record.version, 0, line),
    ];
    const isFree = `attribute_not_exists(${RUN_TABLE.partitionKey})`;
    return this.write(items.map((Item) => ({ Put: { TableName: this.tableName, Item, ConditionExpression: isFree } })));
  }

  /**
   * Writes a changed run, and books what the change costs for its team.
   * @param before the run as it was read
   * @returns false if another invocation has written the run since then
   */
  async save(record: RunRecord, before: RunRecord, events: readonly TimelineEvent[]): Promise<boolean> {
    const expiry = expiryOf(record, this.retentionDays);
    const isChanged = expiry !== expiryOf(before, this.retentionDays);
    if (isChanged && !(await this.expireItems(record, expiry))) return false;
    const [run, ...others] = itemsOf(record, events);
    recordOf.keep(textOf(run), record);
    const items = [run, ...others].map((item) => expiring(item, record, expiry));
    const isSaved = await this.write(writesOf(this.tableName, items, before, bookedUsd(before, record)));
    if (!isSaved && isChanged) await this.restoreExpiry(before.runId);
    return isSaved;
  }

  /** The items of a run that another invocation has written meanwhile expire as that one decided. */
  private async restoreExpiry(runId: string): Promise<void> {
    const newest = await this.find(runId);
    if (newest) await this.expireItems(newest, expiryOf(newest, this.retentionDays));
  }

  /**
   * Sets or removes the expiry of the items that the next write of the run does not contain. Called before that write, so that no item of a
   * run that continues expires. If the invocation ends here, the next one continues with the remaining items.
   * @returns false if an item was being written
   */
  private async expireItems(record: RunRecord, expiry: number | undefined): Promise<boolean> {
    const all = await this.query({
      ConsistentRead: true,
      KeyConditionExpression: '#run = :run',
      ExpressionAttributeNames: { '#run': RUN_TABLE.partitionKey },
      ExpressionAttributeValues: { ':run': { S: record.runId } },
    });
    const items = changedItems(all, record, expiry);
    for (let from = 0; from < items.length; from += MAX_EXPIRING) {
      const some = items.slice(from, from + MAX_EXPIRING);
      if (!(await this.put(some))) return false;
    }
    return true;
  }

  /** What is booked for the runs of a team in a month (`2026-11`), USD. */
  async findMonthUsd(team: string, month: string): Promise<number> {
    return Number((await this.get(monthItemKey(team, month)))?.[RUN_TABLE.monthUsd]?.N ?? 0);
  }

  /** What jobs of all teams have reported about GPUs. Items that cannot be read are left out. */
  async gpuEvidence(): Promise<GpuEvidence[]> {
    return this.documents(ITEM.gpus, 'GPU-', findGpuEvidence);
  }

  /**
   * A later report of a team about a GPU replaces the earlier one.
   * @returns false if another write of one of the items was in progress: nothing is stored then
   */
  async saveGpuEvidence(evidence: readonly GpuEvidence[]): Promise<boolean> {
    return this.put(evidence.map(gpuItem));
  }

  /** Whether no run may start, because of a deletion or update of the stack. */
  async isClosed(): Promise<boolean> {
    return (await this.get(environmentKey('closed')))?.[RUN_TABLE.isClosed]?.BOOL === true;
  }

  /** State of the queue; undefined before its first pass. */
  async findQueue(): Promise<QueueDocument | undefined> {
    return queueOf(await this.document(environmentKey('queue')));
  }

  /** Only queue passes write it, and these never run concurrently. */
  async saveQueue(queue: QueueDocument): Promise<void> {
    await this.put([documentItem(environmentKey('queue'), queue)]);
  }

  /** Names of the unreadable items of which people were notified. */
  async findNotified(): Promise<string[]> {
    return findNames(await this.document(environmentKey('unreadable'))) ?? [];
  }

  /** Written after the notice was sent, so that a notice may be sent twice but is never lost. */
  async saveNotified(names: readonly string[]): Promise<void> {
    await this.put([documentItem(environmentKey('unreadable'), names)]);
  }

  /** Digests of the pages that were last written, by team; none when they cannot be read. */
  async findPages(): Promise<Record<string, string>> {
    return findDigests(await this.document(environmentKey('pages'))) ?? {};
  }

  /** Written after the pages, so that a page may be written twice but never remains an old one. */
  async savePages(digests: Readonly<Record<string, string>>): Promise<void> {
    await this.put([documentItem(environmentKey('pages'), digests)]);
  }

  /** Runs that are not over, according to the index. Items that cannot be read are in `unreadable` then, and stop no other run. */
  async active(): Promise<RunRecord[]> {
    const unreadable: UnreadableItem[] = [];
    const items = await this.query(byIndex(ACTIVE_INDEX.name, ACTIVE_INDEX.partitionKey, ACTIVE_INDEX.value));
    const records = readable(items, unreadable, recordIn);
    this.unreadable = unreadable;
    return records;
  }

  /** The newest runs of a team, newest first. */
  async ofTeam(team: string, limit: number): Promise<RunRecord[]> {
    const runs: RunRecord[] = [];
    for await (const page of this.pagesOfTeam(team, limit, limit)) runs.push(...page);
    return runs.slice(0, limit);
  }

  /** The newest runs of a team, newest first, in pages of at most `pageSize` runs (and 1 MB), up to the page with which there are `most`. */
  async *pagesOfTeam(team: string, most: number, pageSize = TEAM_PAGE): AsyncGenerator<RunRecord[]> {
    const query = byIndex(TEAM_INDEX.name, TEAM_INDEX.partitionKey, team);
    let listed = 0;
    for await (const items of this.pages({ ...query, ScanIndexForward: false, Limit: pageSize })) {
      const page = readable(items, [], recordIn);
      yield page;
      listed += page.length;
      if (listed >= most) return;
    }
  }

  /** All attempts of a run, oldest first. */
  async attempts(runId: string): Promise<Attempt[]> {
    return this.documents(runId, ITEM.attempts, findAttempt);
  }

  /** All attempts of a run, oldest first, the newest as the record has it. A process reads earlier ones once: they have ended. */
  async attemptsOf({ runId, attempt }: RunRecord): Promise<Attempt[]> {
    if (!attempt || attempt.number === 1) return attempt ? [attempt] : [];
    const key = `${runId}/${attempt.number}`;
    const known = this.earlier.get(key);
    const earlier = known ?? (await this.attempts(runId)).filter(({ number }) => number < attempt.number);
    if (!known) this.earlier.set(key, earlier, JSON.stringify(earlier).length);
    return [...earlier, attempt];
  }

  /** All timeline events of a run, oldest first. */
  async timeline(runId: string): Promise<TimelineEvent[]> {
    return this.documents(runId, ITEM.events, findLine);
  }

  /**
   * Timeline events of a run from a position on, oldest first, each with its own position.
   * @param from a time (inclusive), or the position of an event (exclusive); empty = from the beginning
   */
  async timelinePage(runId: string, from: string, limit: number): Promise<{ cursor: string; line: TimelineEvent }[]> {
    const { Items } = await this.dynamodb.send(
      new QueryCommand({
        TableName: this.tableName,
        ConsistentRead: true,
        KeyConditionExpression: '#run = :run AND #item BETWEEN :from AND :to',
        ExpressionAttributeNames: { '#run': RUN_TABLE.partitionKey, '#item': RUN_TABLE.sortKey },
        ExpressionAttributeValues: {
          ':run': { S: runId },
          // `!` sorts before every character that can follow, so the query starts just after this position.
          ':from': { S: `${ITEM.events}${from.includes('#') ? `${from}!` : from}` },
          ':to': { S: `${ITEM.events}~` },
        },
        Limit: limit,
      }),
    );
    return (Items ?? []).flatMap((item) => {
      const line = findLine(item.document?.S ?? '');
      return line ? [{ cursor: (item[RUN_TABLE.sortKey]?.S ?? '').slice(ITEM.events.length), line }] : [];
    });
  }

  /** Documents of the items of a run whose names have a prefix, without those that cannot be read. */
  private async documents<T>(runId: string, prefix: string, find: (json: string) => T | undefined): Promise<T[]> {
    const items = await this.query({
      ConsistentRead: true,
      KeyConditionExpression: '#run = :run AND begins_with(#item, :prefix)',
      ExpressionAttributeNames: { '#run': RUN_TABLE.partitionKey, '#item': RUN_TABLE.sortKey },
      ExpressionAttributeValues: { ':run': { S: runId }, ':prefix': { S: prefix } },
    });
    return items.flatMap((item) => find(item.document?.S ?? '') ?? []);
  }

  private async document(key: Item): Promise<string> {
    return (await this.get(key))?.document?.S ?? '';
  }

  private async get(Key: Item): Promise<Item | undefined> {
    const command = new GetItemCommand({ TableName: this.tableName, Key, ConsistentRead: true });
    return (await this.dynamodb.send(command)).Item;
  }

  private async query(input: Partial<QueryCommandInput>): Promise<Item[]> {
    const found: Item[] = [];
    for await (const items of this.pages(input)) found.push(...items);
    return found;
  }

  private async *pages(input: Partial<QueryCommandInput>): AsyncGenerator<Item[]> {
    const pages = paginateQuery({ client: this.dynamodb }, { TableName: this.tableName, ...input });
    for await (const { Items = [] } of pages) yield Items;
  }

  private put(items: readonly Item[]): Promise<boolean> {
    return this.write(items.map((Item) => ({ Put: { TableName: this.tableName, Item } })));
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

/** Runs by id, from RUN items; those that cannot be read are left out. */
export const runsIn = (items: readonly Item[]): Map<string, RunRecord> =>
  new Map(readable(items, [], (item) => [idOf(item), recordIn(item)] as const));

/** Reads items, and adds those that cannot be read to `unreadable`. */
function readable<T>(items: readonly Item[], unreadable: UnreadableItem[], read: (item: Item) => T): T[] {
  return items.flatMap((item) => {
    try {
      return [readItem(item, read)];
    } catch (error) {
      unreadable.push(error as UnreadableItem);
      return [];
    }
  });
}

const byIndex = (IndexName: string, key: string, value: string): Partial<QueryCommandInput> => ({
  IndexName,
  KeyConditionExpression: '#key = :value',
  ExpressionAttributeNames: { '#key': key },
  ExpressionAttributeValues: { ':value': { S: value } },
});

/** Only a TransactionCanceledException has reasons. */
function isLostRace(error: unknown): boolean {
  const { CancellationReasons: reasons = [] } = error as Partial<TransactionCanceledException>;
  return reasons.some((r) => r.Code === 'ConditionalCheckFailed' || r.Code === 'TransactionConflict');
}
