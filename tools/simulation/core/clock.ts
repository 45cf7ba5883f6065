/** Milliseconds since the start of the scenario. */
export type SimMs = number;

/** An event that can be cancelled until it has run. */
export interface Scheduled {
  readonly at: SimMs;
  cancel(): void;
}

class Timer implements Scheduled {
  constructor(
    readonly at: SimMs,
    readonly order: number,
    public run: (() => void) | undefined,
  ) {}

  cancel(): void {
    this.run = undefined;
  }
}

/** Events with the same delay: they run in the order in which they were scheduled. */
interface Lane {
  ms: number;
  timers: Timer[];
  /** Index of the next event. */
  head: number;
}

/** Number of finished events after which a lane is compacted. */
const MAX_RUN_IN_LANE = 1024;

const SETTLED_BETWEEN_MACROTASKS = 1000;

/**
 * Virtual time: a heap of events, run in the order of time; events at the same time run in the order in which they were scheduled.
 * Asynchronous code that an event resumes runs until it waits again, before the next event.
 */
export class VirtualClock {
  now: SimMs = 0;
  private readonly heap: Timer[] = [];
  private readonly lanes: Lane[] = [];
  private order = 0;
  private settled = 0;
  private mayGoOn = false;
  private failure: { error: unknown } | undefined;

  schedule(at: SimMs, run: () => void): Scheduled {
    const timer = new Timer(Math.max(Math.round(at), this.now), this.order++, run);
    this.push(timer);
    return timer;
  }

  after(ms: number, run: () => void): Scheduled {
    return this.schedule(this.now + ms, run);
  }

  /** Like `after`, for a delay that is used very often: its events need no sorting. */
  lane(ms: number): (run: () => void) => Scheduled {
    let lane = this.lanes.find((one) => one.ms === ms);
    if (!lane) {
      lane = { ms, timers: [], head: 0 };
      this.lanes.push(lane);
    }
    const { timers } = lane;
    return (run) => {
      const timer = new Timer(Math.round(this.now + ms), this.order++, run);
      timers.push(timer);
      return timer;
    };
  }

  /** Must be called by an event that resolves a promise: code that awaits it runs before the next event. */
  wake(): void {
    this.mayGoOn = true;
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.after(ms, () => {
        this.wake();
        resolve();
      });
    });
  }

  /** Ends the simulation with an error, even if the code that caused it catches its own exceptions. */
  fail(error: unknown): void {
    this.failure ??= { error };
  }

  /** Runs every event up to `end`, and then sets the time to `end`. */
  async runUntil(end: SimMs): Promise<void> {
    // process.nextTick callbacks run after all microtasks only if they are scheduled from a microtask.
    await undefined;
    for (let timer = this.takeUntil(end); timer; timer = this.takeUntil(end)) {
      if (!timer.run) continue;
      this.now = timer.at;
      timer.run();
      if (this.mayGoOn) {
        this.mayGoOn = false;
        await this.settle();
      }
      if (this.failure) throw this.failure.error;
    }
    this.now = end;
  }

  /** Removes and returns the next event; undefined when it is later than `end`. */
  private takeUntil(end: SimMs): Timer | undefined {
    let [next, from] = [this.heap[0], undefined as Lane | undefined];
    for (const lane of this.lanes) {
      const first = firstOf(lane);
      if (first && (!next || isBefore(first, next))) [next, from] = [first, lane];
    }
    if (!next || next.at > end) return undefined;
    if (from) from.head += 1;
    else this.pop();
    return next;
  }

  /**
   * Resolves when all resumed code waits again: process.nextTick callbacks run after all microtasks. At intervals it uses a macrotask, so
   * that signals and the caller's timers are handled.
   */
  private settle(): Promise<void> {
    this.settled += 1;
    const isLong = this.settled % SETTLED_BETWEEN_MACROTASKS === 0;
    return new Promise((resolve) => {
      if (isLong) setImmediate(resolve);
      else process.nextTick(resolve);
    });
  }

  private push(timer: Timer): void {
    const { heap } = this;
    let at = heap.push(timer) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const above = heap[parent] as Timer;
      if (!isBefore(timer, above)) break;
      heap[at] = above;
      at = parent;
    }
    heap[at] = timer;
  }

  private pop(): void {
    const { heap } = this;
    const last = heap.pop() as Timer;
    if (heap.length === 0) return;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1] as Timer, heap[child] as Timer)) child += 1;
      if (!isBefore(heap[child] as Timer, last)) break;
      heap[at] = heap[child] as Timer;
      at = child;
    }
    heap[at] = last;
  }
}

/** The first event of a lane that was not cancelled. */
function firstOf(lane: Lane): Timer | undefined {
  const { timers } = lane;
  while (lane.head < timers.length && timers[lane.head]?.run === undefined) lane.head += 1;
  if (lane.head >= MAX_RUN_IN_LANE) {
    timers.splice(0, lane.head);
    lane.head = 0;
  }
  return timers[lane.head];
}

const isBefore = (a: Timer, b: Timer): boolean => a.at < b.at || (a.at === b.at && a.order < b.order);
