import { clientSettings } from '../../handlers/shared/clients';
import { AGAIN_SECONDS } from '../../handlers/shared/queue';
import type { VirtualClock } from '../core/clock';
import type { Gateway } from '../core/gateway';
import type { Invocation, Slot } from '../core/invocation';
import type { DirectCall } from '../core/operation';

/** The work of an invocation that may be played without its function. */
export interface DirectWork<Deps> {
  deps: Deps;
  slot: Slot;
  invocation: Invocation;
  /** Calls the function. */
  real(): Promise<unknown>;
  /** The message to handle. @default - none: a tick */
  message?: { id: string; receipt: string };
  /** Ends the invocation with its answer, or with a promise of it. */
  settle(outcome: unknown): void;
}

/** An answer that the function would not ask for again is left out: its process has kept it. */
type Known = (Invocation['known'][number] | undefined)[];

/** A call of which a process keeps the answer. */
interface KeptCall {
  name: string;
  input: object;
  /** False = the answer is not kept, and the function takes over. */
  keep(answer: object): boolean;
  /** The same for an error. @default - an error is not kept */
  keepError?(error: unknown): boolean;
  next(): void;
}

/**
 * The calls of one invocation whose function does not run: each has its normal latency and the same answer as for the function. The
 * function can take over at any time: it gets the answers so far immediately.
 */
export class DirectCalls<Deps extends { queueUrl: string }> {
  private known: Known = [];

  constructor(
    private readonly world: { readonly clock: VirtualClock; readonly gateway: Gateway },
    readonly work: DirectWork<Deps>,
  ) {}

  /** @param orElse called on an error. @default - the function takes over */
  call(name: string, input: object, then: (answer: object) => void, orElse?: (error: unknown) => void): void {
    const call: DirectCall = { name, input, slot: this.work.slot, settings: clientSettings };
    const place = this.known.push({ answer: undefined }) - 1;
    const resolve = (answer: unknown) => {
      this.known[place] = { answer };
      then(answer as object);
    };
    const reject = (error: unknown) => {
      this.known[place] = { error };
      if (orElse) orElse(error);
      else this.goOn();
    };
    this.world.gateway.direct(call, resolve, reject);
  }

  /** A call whose answer the function keeps for later invocations of its process, as `keep` does here. */
  keptCall({ name, input, keep, keepError = () => false, next }: KeptCall): void {
    const place = this.known.length;
    const end = (isKept: boolean) => {
      if (!isKept) return this.goOn();
      this.known[place] = undefined;
      next();
    };
    this.call(
      name,
      input,
      (answer) => end(keep(answer)),
      (error) => end(keepError(error)),
    );
  }

  /** Runs the function for the remaining work. No call may be in progress. */
  goOn(): void {
    const { invocation, settle, real } = this.work;
    invocation.known.push(...this.known.filter((answer) => answer !== undefined));
    this.world.clock.wake();
    settle(real());
  }

  /**
   * Fails the message with an error that the function does not catch: it is made visible again soon, as in `onMessages` of
   * lib/handlers/reconcile/reconcile.ts.
   */
  fail(): void {
    const { deps, message, settle } = this.work;
    if (!message) throw new Error('only a message comes again');
    const ReceiptHandle = message.receipt;
    const input = { QueueUrl: deps.queueUrl, ReceiptHandle, VisibilityTimeout: AGAIN_SECONDS };
    const end = () => settle({ batchItemFailures: [{ itemIdentifier: message.id }] });
    this.call('sqs:ChangeMessageVisibility', input, end, end);
  }

  /** Discards the answers so far, because what the function does from here on does not depend on them. */
  forget(): void {
    this.known = [];
  }
}
