import { setMaxListeners } from 'node:events';
import type { JobWaits } from './capacity';
import { internalError } from './job-failure';

/** Why a running job has to end its current activity. */
export type Ending =
  | { kind: 'stop' }
  | { kind: 'max-runtime' }
  | { kind: 'max-wait' }
  | { kind: 'max-pending' }
  /** The sandbox itself is shutting down: no further states, no uploads. */
  | { kind: 'shutdown' }
  /** These two end an attempt; the job may begin another one. */
  | { kind: 'spot' }
  | { kind: 'internal-error' };

const PASSING: readonly Ending['kind'][] = ['spot', 'internal-error'];

/** Thrown from any wait of a job that must end. */
export class Ended extends Error {
  constructor(readonly ending: Ending) {
    super(ending.kind);
  }
}

/**
 * Every transfer in flight has two listeners, for its request and for its stream, and every wait of the job has one; each is removed when
 * it completes. Node warns of a leak from 11 listeners on.
 */
const MAX_LISTENERS = 64;

/** Tells all activities of a job that it must end. The first final reason is kept. */
export class RunControl {
  private final?: Ending;
  private passing?: Ending;
  private controller = newController();
  private readonly limits = new Map<string, NodeJS.Timeout>();

  get ending(): Ending | undefined {
    return this.final ?? this.passing;
  }

  get signal(): AbortSignal {
    return this.controller.signal;
  }

  end(ending: Ending): void {
    if (ending.kind === 'shutdown') this.final = ending;
    if (this.final && this.final !== ending) return;
    if (!PASSING.includes(ending.kind)) this.final = ending;
    else if (this.passing) return;
    else this.passing = ending;
    this.controller.abort();
  }

  /** Resets for the next attempt, unless the whole job must end. */
  clearPassing(): void {
    if (this.final) return;
    this.passing = undefined;
    this.controller = newController();
  }

  /** Waits for `work`, but no longer than until the job must end. */
  async race<T>(work: Promise<T>): Promise<T> {
    const { signal } = this;
    this.throwIfEnded();
    let onAbort = () => {};
    const ended = new Promise<never>((_, reject) => {
      onAbort = () => reject(new Ended(this.ending ?? { kind: 'stop' }));
      signal.addEventListener('abort', onAbort, { once: true });
    });
    // When the job ends first, a later failure of the work is ignored.
    work.catch(() => {});
    try {
      return await Promise.race([work, ended]);
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
  }

  /** Sleeps on the wall clock; null sleeps until the job must end. */
  async sleep(seconds: number | null): Promise<void> {
    if (seconds === 0) return;
    let timer: NodeJS.Timeout | undefined;
    const elapsed = new Promise<void>((resolve) => {
      if (seconds !== null) timer = setTimeout(resolve, seconds * 1000);
    });
    try {
      await this.race(elapsed);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Ends the job for this reason after a time, instead of an earlier time for the same reason; undefined: not at all. */
  endAfter(kind: Ending['kind'], ms: number | undefined): void {
    clearTimeout(this.limits.get(kind));
    // setTimeout accepts at most 2^31 ms, 24.8 days, which is longer than any sandbox job.
    if (ms === undefined || ms > 2 ** 31 - 1) return;
    this.limits.set(
      kind,
      setTimeout(() => this.end({ kind }), Math.max(0, ms)),
    );
  }

  clearLimits(): void {
    for (const timer of this.limits.values()) clearTimeout(timer);
  }

  throwIfEnded(): void {
    if (this.ending) throw new Ended(this.ending);
  }
}

function newController(): AbortController {
  const controller = new AbortController();
  setMaxListeners(MAX_LISTENERS, controller.signal);
  return controller;
}

/**
 * Stays in a state for its usual time, or longer because of a planned fault.
 * @throws JobFailure InternalServerError because of a planned fault in this state
 */
export async function holdState(
  state: 'Starting' | 'Downloading' | 'Uploading',
  seconds: number,
  { faults, control, target }: JobWaits,
): Promise<void> {
  const delay = faults.strike('state-delay', { ...target, state });
  await control.sleep(seconds + (delay?.seconds ?? 0));
  if (delay?.seconds === null) await control.race(faults.untilRemoved(delay));
  if (faults.strike('internal-error', { ...target, state })) throw internalError();
}
