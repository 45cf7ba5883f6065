import type { ReconcileDeps } from '../../handlers/reconcile/deps';
import { wanted } from '../../handlers/reconcile/reconcile-run';
import { type Item, runKey } from '../../handlers/shared/items';
import { isQueued } from '../../handlers/shared/queue-runs';
import { NOTHING_OBSERVED } from '../../lifecycle/observed';
import { liveAttempt, type RunRecord } from '../../lifecycle/record';
import { recordOfItem } from '../services/kept-document';
import type { SimRun } from '../world/sim-run';
import { DirectCalls, type DirectWork } from './direct-work';
import { NOTHING_FAILED, type WorldOfLooks } from './world-of-looks';

const READ = 'dynamodb:GetItem';

/**
 * Looks of `reconcile` at a run that waits in the queue, has no job, and has no other kind of capacity to choose: it is read, and nothing
 * is decided. In every other case the function takes over with what was read.
 */
export class DirectQueuedLooks {
  /** Looks at which the function was not called. */
  count = 0;

  constructor(private readonly world: WorldOfLooks) {}

  mayPlay({ record }: SimRun): boolean {
    return record !== undefined && waitsAlone(record);
  }

  play({ runId = '' }: SimRun, work: DirectWork<ReconcileDeps>): void {
    const { world } = this;
    const calls = new DirectCalls<ReconcileDeps>(world, work);
    const input = { TableName: world.names.tableName, Key: runKey(runId), ConsistentRead: true };
    calls.call(
      READ,
      input,
      ({ Item: item }: { Item?: Item }) => {
        const record = item && recordOfItem(item);
        // What a look was begun for may have changed since.
        if (!record || !waitsAlone(record)) calls.goOn();
        else this.judge(calls, record);
      },
      () => calls.fail(),
    );
  }

  private judge(calls: DirectCalls<ReconcileDeps>, record: RunRecord): void {
    const { deps, settle } = calls.work;
    if (wanted(record, { ...NOTHING_OBSERVED, published: [] }, deps.now().getTime()).length > 0) {
      calls.goOn();
      return;
    }
    this.count += 1;
    settle(NOTHING_FAILED);
  }
}

/** Of one rung nothing is chosen, so that neither memory nor quota is asked for. */
const waitsAlone = (record: RunRecord): boolean =>
  isQueued(record) && liveAttempt(record) === undefined && record.policy.ladder.length < 2;
