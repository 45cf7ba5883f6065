import { BatchGetItemCommand } from '@aws-sdk/client-dynamodb';
import type { RunRecord } from '../../../core/lifecycle/record';
import { describeError } from '../../shared/errors';
import { runKey } from '../../shared/items';
import { idOf, runsIn } from '../../shared/run-store';
import type { ReconcileDeps } from '../deps';

/**
 * Number of keys that one BatchGetItem may contain: https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchGetItem.html
 */
export const MAX_IN_READ = 100;
/**
 * A batch read leaves items unprocessed when it is throttled or its answer exceeds 16 MB; they are requested up to this many times, each
 * time after twice the delay.
 */
const MAX_READS = 3;
const FIRST_PAUSE_MS = 100;

type Deps = Pick<ReconcileDeps, 'store' | 'log' | 'sleep'>;
type Found = Map<string, RunRecord | undefined>;

/**
 * Current records of runs, by id; undefined for a run that does not exist. Runs that could not be read are missing from the map: the next
 * pass requests them again.
 * @param runIds without duplicates
 */
export async function readAgain(deps: Deps, runIds: readonly string[]): Promise<Found> {
  const found: Found = new Map();
  for (let from = 0; from < runIds.length; from += MAX_IN_READ) {
    await readSome(deps, runIds.slice(from, from + MAX_IN_READ), found);
  }
  return found;
}

async function readSome(deps: Deps, runIds: readonly string[], found: Found): Promise<void> {
  let requested = runIds;
  let error = 'the service left them out each time';
  try {
    for (let tries = 0; tries < MAX_READS && requested.length > 0; tries++) {
      if (tries > 0) await deps.sleep(FIRST_PAUSE_MS * 2 ** (tries - 1));
      requested = await read(deps, requested, found);
    }
  } catch (thrown) {
    error = describeError(thrown);
  }
  if (requested.length > 0) deps.log('error', 'runs were passed over by the queue', { runIds: requested, error });
}

/** @returns the runs that the service left unprocessed */
async function read({ store }: Deps, runIds: readonly string[], found: Found): Promise<string[]> {
  const { tableName, dynamodb } = store;
  const RequestItems = { [tableName]: { Keys: runIds.map(runKey), ConsistentRead: true } };
  const { Responses, UnprocessedKeys } = await dynamodb.send(new BatchGetItemCommand({ RequestItems }));
  const left = (UnprocessedKeys?.[tableName]?.Keys ?? []).map(idOf);
  const items = Responses?.[tableName] ?? [];
  const records = runsIn(items);
  const isThere = new Set([...left, ...items.map(idOf)]);
  for (const runId of runIds) if (records.has(runId) || !isThere.has(runId)) found.set(runId, records.get(runId));
  return left;
}
