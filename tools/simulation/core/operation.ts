import type { Invocation, Slot } from './invocation';

/** One operation of a service: its effect at the moment when the call reaches the service, and its answer. */
export interface Operation {
  /** It changes something: a fault `kill` counts it. */
  writes?: true;
  latencyMs: number;
  /** The client sends an idempotency token, so that an SDK retry after a lost answer changes nothing more. */
  hasToken?: true;
  /** Parameters that `run` supports, where a caller could send others. @default - any, for a request that is only stored */
  knows?: readonly string[];
  /** The text with which the `key` of a fault is compared. */
  key?(input: never): string | undefined;
  run(input: never, invocation: Invocation): unknown;
}
/** Operations of a service, by their SDK names. */
export type Operations = Readonly<Record<string, Operation>>;

/** Configuration of an SDK client; the same object that the deployed function passes to it. */
export interface ClientSettings {
  maxAttempts?: number;
  requestHandler?: { requestTimeout?: number; throwOnRequestTimeout?: boolean };
}

/** A call of an invocation whose function does not run. */
export interface DirectCall {
  /** `service:Operation`. */
  name: string;
  input: object;
  slot: Slot;
  settings: ClientSettings;
}
