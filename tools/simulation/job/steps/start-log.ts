import type { SimMs } from '../../core/clock';
import { EPOCH_MS } from '../../core/epoch';

/** A period of uninterrupted steps: hung ranks that continue begin another period of the same start. */
interface Stretch {
  from: SimMs;
  step: number;
  until?: SimMs;
  last?: number;
}

interface Start {
  /** When the driver began it. @default - at the start of the driver */
  beganAt?: SimMs;
  stretches: Stretch[];
  endedAt?: SimMs;
}

/** Time after the ranks have exited until the hosts agree on an in-place restart. */
const AGREE_MS = 60_000;

/** The starts of a driver's ranks, for its heartbeat (containers/driver/slipway_driver/step_times.py). */
export class StartLog {
  private all: Start[] = [{ stretches: [] }];

  /** The service restarted the container: the new driver knows nothing of the old one. */
  renew(): void {
    this.all = [{ stretches: [] }];
  }

  step(from: SimMs, step: number): void {
    this.newest.stretches.push({ from, step });
  }

  pause(until: SimMs, last: number): void {
    Object.assign(this.newest.stretches.at(-1) ?? {}, { until, last });
  }

  /** The ranks have exited. */
  end(now: SimMs): void {
    this.newest.endedAt ??= now;
  }

  /** The ranks exit and are restarted in place. */
  next(now: SimMs): void {
    this.end(now);
    this.all.push({ beganAt: now + AGREE_MS, stretches: [] });
  }

  /** The field `starts` of a heartbeat at this time. */
  facts(at: SimMs, secondsPerStep: number, totalSteps: number) {
    const stepMs = secondsPerStep * 1000;
    const begun = this.all.filter(({ beganAt = at }) => beganAt <= at);
    return begun.slice(-MAX_IN_HEARTBEAT).map(({ stretches, endedAt }, place) => {
      const number = Math.max(0, begun.length - MAX_IN_HEARTBEAT) + place;
      const made = stretches
        .filter(({ from }) => from <= at)
        .map(({ from, step, until = at, last = totalSteps }) => {
          const count = Math.floor((Math.min(at, until) - from) / stepMs + 1e-9);
          const newest = Math.min(totalSteps, last, step + Math.max(0, count));
          return { first: step + 1, firstAt: from + stepMs, newest, newestAt: from + (newest - step) * stepMs };
        })
        .filter(({ first, newest }) => newest >= first);
      const [first, last] = [made[0], made.at(-1)];
      return {
        number,
        firstStep: first?.first ?? null,
        firstStepAt: secondsOf(first?.firstAt),
        step: last?.newest ?? null,
        stepAt: secondsOf(last?.newestAt),
        endedAt: endedAt !== undefined && endedAt <= at ? secondsOf(endedAt) : null,
      };
    });
  }

  private get newest(): Start {
    return this.all[this.all.length - 1] as Start;
  }
}

const MAX_IN_HEARTBEAT = 8;

/** Epoch seconds, as the driver writes them. */
const secondsOf = (at: SimMs | undefined): number | null => (at === undefined ? null : (EPOCH_MS + at) / 1000);
