import { mayHaveChanged } from '../../handlers/reconcile/admit-runs';
import type { ReconcileDeps } from '../../handlers/reconcile/deps';
import { heldNow } from '../../handlers/reconcile/queue/plan-pass';
import { MOST_IN_READ } from '../../handlers/reconcile/queue/read-again';
import { needsKnown } from '../../handlers/reconcile/queue/run-needs';
import { type Item, queueKey, runKey } from '../../handlers/shared/items';
import { holdsCapacity, isQueued } from '../../handlers/shared/queue-runs';
import { queueDocumentOf } from '../../handlers/shared/run-store';
import { isEqual } from '../../lifecycle/is-equal';
import { mayGrow } from '../../lifecycle/phases/grow';
import type { RunRecord } from '../../lifecycle/record';
import { recordOfItem } from '../services/kept-document';
import { readActive } from './active-runs';
import { DirectCalls, type DirectWork } from './direct-work';
import { WaitingPass } from './waiting-pass';
import { NOTHING_FAILED, type WorldOfLooks } from './world-of-looks';

const READ = 'dynamodb:GetItem';
const READ_SEVERAL = 'dynamodb:BatchGetItem';

type WorldOfPasses = Pick<WorldOfLooks, 'clock' | 'gateway' | 'table' | 'names'>;

/**
 * Passes of `reconcile` over a queue that decide nothing: no run waits, or the positions and reasons of the waiting runs are unchanged, and so are
 * the instances that teams hold. They are simulated call by call in the order of `admitRuns`; in every other case the function continues with
 * the answers so far.
 */
export class DirectPasses {
  /** Number of passes without a call of the function. */
  count = 0;
  /** Those of them in which runs wait. */
  waited = 0;

  constructor(private readonly world: WorldOfPasses) {}

  play(work: DirectWork<ReconcileDeps>): void {
    const { tableName } = this.world.names;
    const calls = new DirectCalls(this.world, work);
    readActive(calls, tableName, (listed) => this.readNewest(calls, listed));
  }

  /** The index lags behind; what an elastic run holds changes from one attempt to the next, and who starts is decided on what is written. */
  private readNewest(calls: DirectCalls<ReconcileDeps>, listed: readonly RunRecord[]): void {
    const asked = listed.filter(mayHaveChanged).map(({ runId }) => runId);
    if (asked.length > MOST_IN_READ) {
      calls.goOn();
      return;
    }
    if (asked.length === 0) {
      this.readQueue(calls, listed);
      return;
    }
    const { tableName } = this.world.names;
    const input = { RequestItems: { [tableName]: { Keys: asked.map(runKey), ConsistentRead: true } } };
    calls.call(READ_SEVERAL, input, (answer) => {
      const { Responses, UnprocessedKeys } = answer as { Responses?: Record<string, Item[]>; UnprocessedKeys?: object };
      if (Object.keys(UnprocessedKeys ?? {}).length > 0) return calls.goOn();
      const records = (Responses?.[tableName] ?? []).map(recordOfItem);
      const seen = new Map(records.map((run) => [run.runId, run]));
      const newest = (run: RunRecord) => (asked.includes(run.runId) ? (seen.get(run.runId) ?? []) : run);
      this.readQueue(calls, listed.flatMap(newest));
    });
  }

  /** A write would contain the current time, so whether the function is needed is decided before the queue's own item is read. */
  private readQueue(calls: DirectCalls<ReconcileDeps>, active: readonly RunRecord[]): void {
    const { deps, settle } = calls.work;
    const waiting = active.filter(isQueued);
    const holding = active.filter(holdsCapacity);
    const needs = needsKnown(deps.store, [...waiting, ...holding]);
    const queue = this.world.table.find(queueKey);
    const usage = queue && queueDocumentOf(queue).usage;
    if (!needs || !usage || !isEqual(usage.held, heldNow(holding, needs))) {
      calls.goOn();
      return;
    }
    const end = () => {
      this.count += 1;
      settle(NOTHING_FAILED);
    };
    const input = { TableName: this.world.names.tableName, Key: queueKey, ConsistentRead: true };
    calls.call(READ, input, ({ Item: item }: { Item?: Item }) => {
      if (item !== queue) this.world.clock.fail(new Error('two passes over the queue at once'));
      if (waiting.length === 0 && !holding.some((run) => mayGrow(run, deps.now().getTime()))) return end();
      const known = { active, waiting, holding, needs, usage };
      const endWaiting = () => {
        this.waited += 1;
        end();
      };
      new WaitingPass(this.world, calls, known, endWaiting).play();
    });
  }
}
