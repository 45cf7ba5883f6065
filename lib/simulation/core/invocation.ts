import type { SimMs } from './clock';

export type FunctionName = 'control' | 'reconcile' | 'registered-run';

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
}

/** An execution environment: what one process holds, and the one invocation that runs in it. */
export interface Slot {
  invocation: Invocation | undefined;
}
