import type { Context } from 'aws-lambda';

/** Time reserved at the end of an invocation, for reporting failures and returning messages to the queue. */
export const RESERVE_MS = 10_000;
/** The part of this reserve that the client that returns messages to the queue must leave. */
export const LAST_RESERVE_MS = 2000;

/** The part of Lambda's context that gives the remaining time. */
export type InvocationContext = Pick<Context, 'getRemainingTimeInMillis'>;

type Send = (command: unknown, options?: object) => unknown;

/** The client with another `send`, which gets the client's own. */
const withSend = <T extends object>(
  client: T,
  replaced: (send: Send, command: unknown, options?: object) => unknown,
): T =>
  new Proxy(client, {
    get: (target, key) => {
      const value: unknown = Reflect.get(target, key, target);
      if (typeof value !== 'function') return value;
      const own = value.bind(target) as Send;
      return key === 'send' ? (command: unknown, options?: object) => replaced(own, command, options) : own;
    },
  });

/**
 * The client as long as so much time remains, so that many calls leave time for what must follow them. Then its calls throw.
 * @param remainingMs of the invocation. @default unlimited
 */
export const whileTimeRemains = <T extends object>(
  client: T,
  reserveMs: number,
  remainingMs: (() => number) | undefined,
): T =>
  withSend(client, (send, command, options) => {
    if (remainingMs && remainingMs() < reserveMs) throw new Error('too little time is left in this invocation');
    return send(command, options);
  });

/**
 * The end of the current invocation. A process serves one invocation at a time, so that one object suffices for all of its clients. Without
 * it, a service that does not answer would block an invocation until Lambda ends it, and a FIFO message group until the visibility timeout
 * ends.
 */
export class Deadline {
  private context: InvocationContext | undefined;

  /** Call at the start of each invocation. */
  begin(context: InvocationContext | undefined): void {
    this.context = context;
  }

  /** Milliseconds until work must end; unlimited outside an invocation. */
  readonly remainingMs = (): number =>
    this.context ? Math.max(0, this.context.getRemainingTimeInMillis() - RESERVE_MS) : Number.POSITIVE_INFINITY;

  /**
   * Wraps a client so that every call, including retries, ends at the deadline: the SDK then throws an AbortError.
   * @param reserveMs of the invocation's time that its calls may not use. @default 10 s
   */
  limit<T extends object>(client: T, reserveMs = RESERVE_MS): T {
    return withSend(client, (send, command, options) => send(command, { ...options, ...this.signal(reserveMs) }));
  }

  private signal(reserveMs: number): { abortSignal?: AbortSignal } {
    if (!this.context) return {};
    const left = Math.max(0, this.context.getRemainingTimeInMillis() - reserveMs);
    return { abortSignal: AbortSignal.timeout(Math.floor(left)) };
  }
}
