import { RUN_QUEUE_VISIBILITY_SECONDS, TICK_SECONDS } from '../../../lib/core/contracts/launcher';
import type { SimMs } from '../core/clock';
import { KILLED } from '../core/gateway';

/** A message whose function died is delivered again after this long. */
const AFTER_DEATH_MS = RUN_QUEUE_VISIBILITY_SECONDS * 1000;

/** When services failed or answered late and functions died: this excuses decisions that were not made in time. */
export class Troubles {
  private readonly last = new Map<string, SimMs>();
  private deathAt: SimMs | undefined;
  private faultAt = Number.NEGATIVE_INFINITY;

  note(operation: string, at: SimMs, isOverRate = false): void {
    this.last.set(operation, at);
    if (!isOverRate) this.faultAt = at;
  }

  died(at: SimMs, why: string): void {
    this.deathAt = at;
    if (why === KILLED) this.faultAt = at;
  }

  /** The last time that a fault of the scenario affected a call or a function; rate limits and timeouts are not faults. */
  get lastFaultAt(): SimMs {
    return this.faultAt;
  }

  /** The last time that calls of these services or operations failed; `-Infinity` when they never did. */
  lastOf(names: readonly string[]): SimMs {
    let last = Number.NEGATIVE_INFINITY;
    for (const [operation, at] of this.last) {
      if (names.some((name) => operation === name || operation.startsWith(`${name}:`))) last = Math.max(last, at);
    }
    return last;
  }

  /** From when on decisions that need these services must be in time again: two ticks after the last failure. */
  calmSince(names: readonly string[]): SimMs {
    const died = this.deathAt === undefined ? Number.NEGATIVE_INFINITY : this.deathAt + AFTER_DEATH_MS;
    return Math.max(died, this.lastOf(names)) + 2 * TICK_SECONDS * 1000;
  }
}
