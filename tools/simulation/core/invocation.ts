import type { SimMs } from './clock';

/** A function of the control plane that the simulation invokes. */
export type FunctionName = 'control' | 'reconcile' | 'registered-run' | 'guards';

/** One invocation of a function, as the services see its calls. */
export interface Invocation {
  id: number;
  name: FunctionName;
  startedAt: SimMs;
  /** Killed or timed out: none of its pending calls is answered any more. */
  isDead: boolean;
  /** Number of calls that wrote so far. */
  effects: number;
  /** Number of calls that were throttled on every try. */
  throttledCalls: number;
  /** Ends it at once. */
  die(why: string): void;
  /** When this invocation last wrote the RUN item of a run; undefined before its first such write. */
  wroteRunAt: Map<string, SimMs> | undefined;
  /** Number of random numbers drawn for its calls so far. */
  draws: number;
  /** Results of its next calls, which were already made on its behalf: they are returned immediately. */
  known: ({ answer: unknown } | { error: unknown })[];
}

/** An execution environment: the state of one process, and the invocation that runs in it. */
export interface Slot {
  invocation: Invocation | undefined;
}

/** Notes that an invocation has just written the RUN item of a run. Most invocations write none. */
export function noteWrite(invocation: Invocation, runId: string, now: SimMs): void {
  invocation.wroteRunAt ??= new Map();
  invocation.wroteRunAt.set(runId, now);
}
