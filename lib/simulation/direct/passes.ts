import { mayHaveChanged } from '../../handlers/reconcile/admit-runs';
import type { ReconcileDeps } from '../../handlers/reconcile/deps';
import { MOST_IN_READ } from '../../handlers/reconcile/queue/read-again';
import { needsKnown } from '../../handlers/reconcile/queue/run-needs';
import { type Item, queueKey, runKey } from '../../handlers/shared/items';
import { holdsCapacity, isQueued, runningRun, usesInstances } from '../../handlers/shared/queue-runs';
import { queueDocumentOf } from '../../handlers/shared/run-store';
import { isEqual } from '../../lifecycle/is-equal';
import { mayGrow } from '../../lifecycle/phases/grow';
import type { RunRecord } from '../../lifecycle/record';
import { heldBy } from '../../queue/usage';
import { recordOfItem } from '../services/kept-document';
import { readActive } from './active-runs';
import { DirectCalls, type DirectWork } from './direct-work';
import { NOTHING_FAILED, type WorldOfLooks } from './world-of-looks';

const READ = 'dynamodb:GetItem';
const READ_SEVERAL = 'dynamodb:BatchGetItem';

type WorldOfPasses = Pick<WorldOfLooks, 'clock' | 'gateway' | 'table' | 'names'>;

/**
 * Passes of `reconcile` over a queue in which nobody waits and nothing has changed that its usage depends on: they read, and decide nothing.
 * Played call by call as `admitRuns` makes them; in every other case the function takes over from what has been read.
 */
export class DirectPasses {
  /** Passes at which the function was not called. */
  count = 0;

  constructor(private readonly world: WorldOfPasses) {}

  play(work: DirectWork<ReconcileDeps>): void {
    const { tableName } = this.world.names;
    const calls = new DirectCalls(this.world, work);
    readActive(calls, tableName, (listed) => this.rereadElastic(calls, listed));
  }

  /** The index lags behind; what an elastic run holds changes from one attempt to the next. */
  private rereadElastic(calls: DirectCalls<ReconcileDeps>, listed: readonly RunRecord[]): void {
    const elastic = listed.filter(mayHaveChanged).map(({ runId }) => runId);
    if (listed.some(isQueued) || elastic.length > MOST_IN_READ) {
      calls.goOn();
      return;
    }
    if (elastic.length === 0) {
      this.judge(calls, listed);
      return;
    }
    const { tableName } = this.world.names;
    const input = { RequestItems: { [tableName]: { Keys: elastic.map(runKey), ConsistentRead: true } } };
    calls.call(READ_SEVERAL, input, ({ Responses }: { Responses?: Record<string, Item[]> }) => {
      const records = (Responses?.[tableName] ?? []).map(recordOfItem);
      const seen = new Map(records.map((run) => [run.runId, run]));
      this.judge(
        calls,
        listed.flatMap((run) => (elastic.includes(run.runId) ? (seen.get(run.runId) ?? []) : run)),
      );
    });
  }

  /** What has to be written has the time of this moment: whether the function is needed is known before the queue's own item is read. */
  private judge(calls: DirectCalls<ReconcileDeps>, active: readonly RunRecord[]): void {
    const { deps, settle } = calls.work;
    const now = deps.now().getTime();
    const holding = active.filter(holdsCapacity);
    if (active.some(isQueued) || holding.some((run) => mayGrow(run, now))) {
      calls.goOn();
      return;
    }
    const needs = needsKnown(deps.store, holding);
    const queue = this.world.table.find(queueKey);
    if (!needs || !queue) {
      calls.goOn();
      return;
    }
    const using = holding.filter(usesInstances).map((run) => runningRun(run, needs.of(run)));
    if (!isEqual(queueDocumentOf(queue).usage.held, heldBy(using))) {
      calls.goOn();
      return;
    }
    const input = { TableName: this.world.names.tableName, Key: queueKey, ConsistentRead: true };
    calls.call(READ, input, ({ Item: item }: { Item?: Item }) => {
      if (item !== queue) this.world.clock.fail(new Error('two passes over the queue at once'));
      this.count += 1;
      settle(NOTHING_FAILED);
    });
  }
}
