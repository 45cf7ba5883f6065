import type { SimMs } from './clock';

/** A function of the control plane that the simulation invokes. */
export type FunctionName = 'control' | 'reconcile' | 'registered-run' | 'guards';

/** One invocation of a function, as the services see its calls. */
export interface Invocation {
  id: number;
  name: FunctionName;
  startedAt: SimMs;
  /** Killed or past its limit: nothing that it waits for comes back any more. */
  isDead: boolean;
  /** Calls that wrote, so far. */
  effects: number;
  /** Calls that the service refused as too many, after all tries. */
  throttledCalls: number;
  /** Ends it at once. */
  die(why: string): void;
  /** When this invocation last wrote the RUN item of a run. */
  wroteRunAt: Map<string, SimMs>;
  /** Numbers that were drawn for its calls so far. */
  draws: number;
  /** What its next calls come to, which were made for it already: they are answered at once. */
  known: ({ answer: unknown } | { error: unknown })[];
}

/** An execution environment: what one process holds, and the one invocation that runs in it. */
export interface Slot {
  invocation: Invocation | undefined;
}
