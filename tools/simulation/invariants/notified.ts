import type { Item } from '../services/expression';
import type { SimRun } from '../world/sim-run';
import { Invariant } from './invariant';

/** Maximum time from the decision until SNS has the notice, if no call fails. */
const IN_FLIGHT_MS = 60_000;

/** Each failure that needs a person causes exactly one notice. */
export class Notified extends Invariant {
  readonly name = 'told';
  private readonly failures: { run: SimRun; at: number; state: string }[] = [];

  override onRunWritten(run: SimRun, before: Item | undefined, item: Item): void {
    const state = item.state?.S ?? '';
    if (state === before?.state?.S) return;
    const byItself = state === 'stopped' && run.requests.at(-1)?.want !== 'stop';
    if (state === 'failed' || byItself) this.failures.push({ run, at: this.now, state });
  }

  override onEnd(): void {
    for (const [i, { run, at, state }] of this.failures.entries()) {
      const next = this.failures.slice(i + 1).find((other) => other.run === run)?.at ?? Number.POSITIVE_INFINITY;
      const given = run.notices.filter((notice) => notice.at >= at && notice.at < next && isAbout(notice.id, state));
      const ids = new Set(given.map(({ id }) => id));
      if (ids.size === 1 && (given.length === 1 || this.mayRepeat())) continue;
      if (ids.size === 0 && this.now - at < IN_FLIGHT_MS) continue;
      this.break(`run ${run.id} ${state} and ${given.length} notices said so`, at);
    }
  }

  /** A publish call is repeated if its answer is lost or the function dies after it: topics deliver at least once. */
  private mayRepeat(): boolean {
    return (this.scene.world.scenario.faults ?? []).some(
      ({ kill, call, error }) =>
        kill !== undefined || (call !== undefined && (error === undefined || !call.startsWith('s3'))),
    );
  }
}

function isAbout(id: string, state: string): boolean {
  return state === 'failed' ? id.startsWith('run-failed/') : /^(spend-cap|outside-stop)\//.test(id);
}
