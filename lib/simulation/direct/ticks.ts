import type { RunMessage } from '../../contracts/launcher';
import type { ReconcileDeps } from '../../handlers/reconcile/deps';
import { SPREAD_MS } from '../../handlers/reconcile/reconcile';
import { entryOf, MOST_IN_BATCH } from '../../handlers/shared/queue';
import { isDueForLook } from '../../lifecycle/health/look';
import type { RunRecord } from '../../lifecycle/record';
import { readActive } from './active-runs';
import { DirectCalls, type DirectWork } from './direct-work';
import type { WorldOfLooks } from './world-of-looks';

type WorldOfTicks = Pick<WorldOfLooks, 'clock' | 'gateway' | 'names'>;

/** Ticks of the schedule, call by call in the order of `onTick` of lib/handlers/reconcile/reconcile.ts, without running the function. */
export class DirectTicks {
  constructor(private readonly world: WorldOfTicks) {}

  /** An error ends the invocation, as it would end the function. */
  play(work: DirectWork<ReconcileDeps>): void {
    const { deps, settle } = work;
    const calls = new DirectCalls(this.world, work);
    const once = `tick/${deps.now().getTime()}`;
    const fail = (error: unknown) => settle(Promise.reject(error));
    const send = (active: readonly RunRecord[]) => {
      const now = deps.now().getTime();
      const due = active.filter((run) => isDueForLook(run, now));
      const first = { QueueUrl: deps.queueUrl, ...entryOf({ kind: 'admit' }, once) };
      calls.call('sqs:SendMessage', first, () => this.sendBatch(calls, { due, once, from: 0 }, fail), fail);
    };
    readActive(calls, this.world.names.tableName, send, fail);
  }

  private sendBatch(
    calls: DirectCalls<ReconcileDeps>,
    { due, once, from }: { due: readonly RunRecord[]; once: string; from: number },
    fail: (error: unknown) => void,
  ): void {
    const { deps, settle } = calls.work;
    if (from >= due.length) {
      settle(undefined);
      return;
    }
    const entry = ({ runId }: RunRecord, i: number) => {
      const message: RunMessage = { kind: 'run', runId };
      return { Id: String(i), ...entryOf(message, once) };
    };
    const Entries = due.slice(from, from + MOST_IN_BATCH).map(entry);
    const next = from + MOST_IN_BATCH;
    const goOn = () => this.sendBatch(calls, { due, once, from: next }, fail);
    const then = () => {
      if (next < due.length) this.world.clock.after(SPREAD_MS, goOn);
      else goOn();
    };
    calls.call('sqs:SendMessageBatch', { QueueUrl: deps.queueUrl, Entries }, then, fail);
  }
}
