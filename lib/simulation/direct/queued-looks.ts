import type { ReconcileDeps } from '../../handlers/reconcile/deps';
import { ladderNeeds, rungsWithin } from '../../handlers/reconcile/observe/rungs';
import { wanted } from '../../handlers/reconcile/reconcile-run';
import { type Item, runKey } from '../../handlers/shared/items';
import { isQueued } from '../../handlers/shared/queue-runs';
import { NOTHING_OBSERVED, type Observed } from '../../lifecycle/observed';
import { liveAttempt, type RunRecord } from '../../lifecycle/record';
import { recordOfItem } from '../services/kept-document';
import type { SimRun } from '../world/sim-run';
import { DirectCalls, type DirectWork } from './direct-work';
import { READ_DESCRIPTOR, readDescriptor, staysAsRecent } from './kept-descriptors';
import { readLimits } from './kept-limits';
import { NOTHING_FAILED, type WorldOfLooks } from './world-of-looks';

const READ = 'dynamodb:GetItem';

/**
 * Passes of `reconcile` over a run that waits in the queue and has no job: they read the run and, if it has several rungs, the quotas of each,
 * and decide nothing. In every other case the function takes over with the answers so far.
 */
export class DirectQueuedLooks {
  /** Number of passes without a call of the function. */
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
        // The state that triggered this pass may have changed since.
        if (!record || !waitsAlone(record)) calls.goOn();
        else if (record.policy.ladder.length < 2) this.judge(calls, record, {});
        else this.readRungs(calls, record);
      },
      () => calls.fail(),
    );
  }

  /** Of several rungs the memory and the quotas are known before one is chosen. */
  private readRungs(calls: DirectCalls<ReconcileDeps>, record: RunRecord): void {
    const { deps } = calls.work;
    const intent = deps.store.knownIntent(record.runId);
    const mayStall = this.world.gateway.mayComeLate([READ_DESCRIPTOR]);
    if (!intent || mayStall || !staysAsRecent(deps, record.team)) {
      calls.goOn();
      return;
    }
    const whole = { record, intent };
    const needs = ladderNeeds(whole).flatMap((rung) => rung.needs);
    readDescriptor(calls, record.team, () =>
      readLimits(this.world, calls, needs, (limits) => this.judge(calls, record, rungsWithin(deps, whole, limits))),
    );
  }

  private judge(calls: DirectCalls<ReconcileDeps>, record: RunRecord, seen: Partial<Observed>): void {
    const { deps, settle } = calls.work;
    if (wanted(record, { ...NOTHING_OBSERVED, ...seen, published: [] }, deps.now().getTime()).length > 0) {
      calls.goOn();
      return;
    }
    this.count += 1;
    settle(NOTHING_FAILED);
  }
}

const waitsAlone = (record: RunRecord): boolean => isQueued(record) && liveAttempt(record) === undefined;
