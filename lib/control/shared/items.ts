import type { AttributeValue, TransactWriteItem } from '@aws-sdk/client-dynamodb';
import type { RunSpec } from '../../core/config/run-spec';
import {
  ACTIVE_INDEX,
  attemptItem,
  eventItem,
  ITEM,
  monthKey,
  RUN_TABLE,
  requestKey,
  TEAM_INDEX,
} from '../../core/contracts/storage';
import type { TimelineEvent } from '../../core/lifecycle/action';
import { FORGOTTEN_MS, type GpuEvidence } from '../../core/lifecycle/health/known-gpus';
import { waitsForPoolAlone } from '../../core/lifecycle/phases/settle-pool';
import { type Attempt, isOver, type RunRecord } from '../../core/lifecycle/record';

/** An item of the run table in DynamoDB's attribute format. */
export type Item = Record<string, AttributeValue>;

/** The inputs from which a run is created. Written once, together with the run, and never changed. */
export interface RunIntent {
  readonly spec: RunSpec;
  /** Location and expected hash of the code archive; null for built-in code. */
  readonly code: { readonly uri: string; readonly sha256: string | null; readonly bytes: number | null } | null;
  readonly driver: { readonly uri: string; readonly hash: string };
  /** Random; the restart secret of each attempt is derived from it. */
  readonly secret: string;
  /** The image that the environment had built when the run was created. */
  readonly trainingImageUri: string | null;
  /** sha256 of the run file and the overrides as they were sent (`textHash` in start.ts). @default - not recorded, before 0.3.0 */
  readonly textHash?: string;
}

/**
 * Version of the documents that this code writes, stored in the attribute `schema`. Fields are only ever added: an older control plane
 * ignores them, and stored.ts fills in fields of the run file that an older version did not write.
 */
const ITEM_SCHEMA = 2;

const text = (value: string): AttributeValue => ({ S: value });
const number = (value: number): AttributeValue => ({ N: String(value) });
const key = (runId: string, item: string): Item => ({
  [RUN_TABLE.partitionKey]: text(runId),
  [RUN_TABLE.sortKey]: text(item),
});

export const runKey = (runId: string): Item => key(runId, ITEM.run);
export const intentKey = (runId: string): Item => key(runId, ITEM.intent);
/** Key of an item that belongs to the environment and not to a run. */
export const environmentKey = (name: 'unreadable' | 'queue' | 'pages' | 'closed'): Item => key(ITEM[name], ITEM[name]);
/** Key of the item of a client's request. */
export const requestItemKey = (team: string, id: string): Item => key(requestKey(team, id), ITEM.request);

/** Key of the spend of a team in a month (`2026-11`). */
export const monthItemKey = (team: string, month: string): Item => key(monthKey(team), month);

/** An item that contains a document. */
export const documentItem = (key: Item, document: unknown): Item => ({
  ...key,
  schema: number(ITEM_SCHEMA),
  document: text(JSON.stringify(document)),
});

/**
 * The RUN item. The document is the record as JSON; values that indexes, conditions and people in the console need are separate attributes.
 * A run leaves the index of active runs when it is over, no notice is pending, and the cost of its warm pool is known.
 */
export function runItem(record: RunRecord): Item {
  const isPoolOnly = waitsForPoolAlone(record);
  const isActive = !isOver(record) || record.outbox.length > 0 || isPoolOnly;
  const item: Item = {
    ...documentItem(runKey(record.runId), toStoredNames(record)),
    version: number(record.version),
    state: text(record.state),
    desired: text(record.desired),
    runName: text(record.name),
    [TEAM_INDEX.partitionKey]: text(record.team),
    [TEAM_INDEX.sortKey]: text(new Date(record.createdAt).toISOString()),
  };
  if (isActive) item[ACTIVE_INDEX.partitionKey] = text(ACTIVE_INDEX.value);
  if (isPoolOnly) item[RUN_TABLE.poolOnly] = { BOOL: true };
  return item;
}

/**
 * A start that repeats a client request id finds the run of the first start, however late: CloudFormation repeats the request of a
 * registered run when it rolls an update back, possibly months later. The item is kept as long as the run.
 */
export const requestItem = (team: string, id: string, runId: string): Item => ({
  ...requestItemKey(team, id),
  madeRun: text(runId),
});

export const gpuItem = (evidence: GpuEvidence): Item => ({
  ...documentItem(key(ITEM.gpus, `${evidence.uuid}#${evidence.team}`), evidence),
  [RUN_TABLE.expiresAt]: number(Math.ceil((evidence.at + FORGOTTEN_MS) / 1000)),
});

export const attemptItemOf = (runId: string, attempt: Attempt): Item =>
  documentItem(key(runId, attemptItem(attempt.number)), toStoredNames(attempt));

export const eventItemOf = (runId: string, version: number, place: number, line: TimelineEvent): Item =>
  documentItem(key(runId, eventItem(new Date(line.at).toISOString(), version, place)), toStoredNames(line));

/** The text of an item's document. */
export function textOf(item: Item): string {
  if (item.document?.S) return item.document.S;
  throw new Error(`item ${JSON.stringify(item[RUN_TABLE.sortKey])} of the run table has no document`);
}

/** A transaction may contain 100 items; more events than this in one decision indicate a bug. */
const MAX_EVENTS = 90;

/** The items of a changed run: the run, its attempt, and the timeline events of the change. */
export function itemsOf(record: RunRecord, events: readonly TimelineEvent[]): [run: Item, ...others: Item[]] {
  const { runId, attempt, version } = record;
  return [
    runItem(record),
    ...(attempt ? [attemptItemOf(runId, attempt)] : []),
    ...events.slice(0, MAX_EVENTS).map((line, place) => eventItemOf(runId, version, place, line)),
  ];
}

/**
 * The writes of a changed run. The first one is conditional on the version with which the run was read, so that what the change costs is
 * added to the months of the team exactly once.
 */
export function writesOf(
  TableName: string,
  [Item, ...others]: readonly Item[],
  before: RunRecord,
  booked: ReadonlyMap<string, number>,
): TransactWriteItem[] {
  const run: TransactWriteItem = {
    Put: {
      TableName,
      Item,
      ConditionExpression: '#version = :previous',
      ExpressionAttributeNames: { '#version': 'version' },
      ExpressionAttributeValues: { ':previous': { N: String(before.version) } },
    },
  };
  const months = [...booked].map(([month, usd]) => addToMonth(TableName, monthItemKey(before.team, month), usd));
  return [run, ...others.map((Item) => ({ Put: { TableName, Item } })), ...months];
}

const addToMonth = (TableName: string, Key: Item, usd: number): TransactWriteItem => ({
  Update: {
    TableName,
    Key,
    UpdateExpression: 'ADD #usd :usd',
    ExpressionAttributeNames: { '#usd': RUN_TABLE.monthUsd },
    ExpressionAttributeValues: { ':usd': { N: usd.toFixed(6) } },
  },
});

const DAY_SECONDS = 86_400;
/** The other items of a run expire after its RUN item, which DynamoDB deletes up to some days late: without them no run can continue. */
const LATER_SECONDS = 7 * DAY_SECONDS;
/** Items by which a start is found again, and its run. */
const RECORDS: readonly string[] = [ITEM.run, ITEM.intent, ITEM.request];

/**
 * When a run expires, epoch seconds: a whole day, so that a repeated decision gives the same time. Undefined while it is not over.
 * @param days for which it is kept; 0 = indefinitely
 */
export function expiryOf({ endedAt, ...record }: RunRecord, days: number): number | undefined {
  if (days === 0 || !isOver(record) || endedAt === undefined) return undefined;
  return (Math.ceil(endedAt / (DAY_SECONDS * 1000)) + days) * DAY_SECONDS;
}

const nameOf = (item: Item): string => item[RUN_TABLE.sortKey]?.S ?? '';

/** Those items of a run, and its request, that a write of the run does not contain and whose expiry changes. */
export function changedItems(all: readonly Item[], record: RunRecord, expiry: number | undefined): Item[] {
  const { runId, team, requestId, attempt } = record;
  const written = [ITEM.run, ...(attempt ? [attemptItem(attempt.number)] : [])];
  const isChanged = (item: Item) =>
    !written.includes(nameOf(item)) && item[RUN_TABLE.expiresAt]?.N !== itemExpiry(item, record, expiry)?.toString();
  const request = requestId === undefined ? [] : [requestItem(team, requestId, runId)];
  return [...all.filter(isChanged), ...request].map((item) => expiring(item, record, expiry));
}

/** The item with the expiry that it has when its run expires at that time, or without one. */
export function expiring(item: Item, record: RunRecord, expiry: number | undefined): Item {
  const { [RUN_TABLE.expiresAt]: _, ...rest } = item;
  const at = itemExpiry(item, record, expiry);
  return at === undefined ? rest : { ...rest, [RUN_TABLE.expiresAt]: { N: String(at) } };
}

function itemExpiry(item: Item, { requestId }: RunRecord, expiry: number | undefined): number | undefined {
  if (expiry === undefined || (requestId === undefined && RECORDS.includes(nameOf(item)))) return undefined;
  return nameOf(item) === ITEM.run ? expiry : expiry + LATER_SECONDS;
}

/**
 * Keys of records and attempts whose name in the run table is older than their name in the code. Items keep the older name, because a rolled
 * back control plane reads what this one wrote.
 */
const STORED_NAMES: Readonly<Record<string, string>> = {
  capacityOptionId: 'rungId',
  capacityOptions: 'ladder',
  heartbeatAt: 'beatAt',
  reservation: 'roomFor',
  silentHeartbeat: 'silentBeat',
  writesHeartbeats: 'beats',
};
const NAMES = new Map(Object.entries(STORED_NAMES).map(([name, stored]) => [stored, name]));
const STORED = new Map(Object.entries(STORED_NAMES));

/** A record, an attempt or a line of the timeline with the keys of the run table. */
export const toStoredNames = (document: object): object => renamed(document, STORED);

/** What the run table contains, with the keys of the code. */
export const fromStoredNames = <T>(document: T): T => renamed(document, NAMES);

function renamed<T>(value: T, names: ReadonlyMap<string, string>): T {
  if (Array.isArray(value)) return value.map((one) => renamed(one, names)) as T;
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([key, inner]) => [
    names.get(key) ?? key,
    // Its keys are the user's own.
    key === 'tags' ? inner : renamed(inner, names),
  ]);
  return Object.fromEntries(entries) as T;
}
