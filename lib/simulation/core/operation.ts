import type { Invocation, Slot } from './invocation';

/** One operation of a service: what it does at the moment when it reaches the service, and what it answers. */
export interface Operation {
  /** It changes something: a fault `kill` counts it. */
  writes?: true;
  latencyMs: number;
  /** The client sends an idempotency token: a repetition by the SDK of a call whose answer was lost changes nothing more. */
  hasToken?: true;
  /** Parameters that `run` honours, where a caller could send others. @default - any, as a request that is only kept */
  knows?: readonly string[];
  /** What a fault's `key` is compared with. */
  key?(input: never): string | undefined;
  run(input: never, invocation: Invocation): unknown;
}
/** Operations of a service, by the SDK's name of each. */
export type Operations = Readonly<Record<string, Operation>>;

/** How a client of the SDK was configured; the same object that the deployed function passes to it. */
export interface ClientSettings {
  maxAttempts?: number;
  requestHandler?: { requestTimeout?: number; throwOnRequestTimeout?: boolean };
}

/** A call of an invocation whose function is not run. */
export interface DirectCall {
  /** `service:Operation`. */
  name: string;
  input: object;
  slot: Slot;
  settings: ClientSettings;
}
