/** Kept back of an invocation's time, so that what failed can still be said and its message be given back. */
const RESERVE_MS = 10_000;
/** What the client that gives messages back leaves of it. */
export const LAST_RESERVE_MS = 2000;

/** What of Lambda's context says how long the invocation may still take. */
export interface InvocationContext {
  getRemainingTimeInMillis(): number;
}

/**
 * The end of the current invocation. A process serves one invocation at a time, so that one object does for all of its clients.
 * Without it a service that does not answer would hold an invocation until Lambda ends it, and a FIFO group until the queue gives its
 * message out again.
 */
export class Deadline {
  private context: InvocationContext | undefined;

  /** Call at the begin of each invocation. */
  begin(context: InvocationContext | undefined): void {
    this.context = context;
  }

  /** Milliseconds until work must end; unlimited outside an invocation. */
  readonly remainingMs = (): number =>
    this.context ? Math.max(0, this.context.getRemainingTimeInMillis() - RESERVE_MS) : Number.POSITIVE_INFINITY;

  /**
   * The client, with every call and its repetitions ended by the deadline: the SDK then throws an AbortError.
   * @param reserveMs of the invocation's time that its calls may not use. @default 10 s
   */
  limit<T extends object>(client: T, reserveMs = RESERVE_MS): T {
    return new Proxy(client, {
      get: (target, key) => {
        const value: unknown = Reflect.get(target, key, target);
        if (typeof value !== 'function') return value;
        if (key !== 'send') return value.bind(target);
        return (command: unknown, options: object = {}) =>
          value.call(target, command, { ...options, ...this.signal(reserveMs) });
      },
    });
  }

  private signal(reserveMs: number): { abortSignal?: AbortSignal } {
    if (!this.context) return {};
    const left = Math.max(0, this.context.getRemainingTimeInMillis() - reserveMs);
    return { abortSignal: AbortSignal.timeout(Math.floor(left)) };
  }
}
