import type { Rate } from './constants';

export type Policy = 'slipway' | 'today';

export interface LogLine {
  policy: Policy;
  rate: Rate;
  nodes: number;
  seed: number;
  /** Seconds after the start. */
  at: number;
  event: string;
  detail: Record<string, unknown>;
}

export type Log = (at: number, event: string, detail?: Record<string, unknown>) => void;

/** Where the time goes that is not kept steps. `gap` is what no other cause took: ticks, back-off, people. */
export const CAUSES = [
  ...(['save', 'copy', 'lost', 'detection', 'prepare', 'rendezvous', 'compile', 'load'] as const),
  ...(['capacity', 'start', 'handover', 'gap'] as const),
] as const;
export type Cause = (typeof CAUSES)[number];

export interface RunResult {
  /** Seconds of kept steps. */
  productiveSeconds: number;
  /** Absent for today's policy. */
  seconds?: Record<Cause, number>;
  wallSeconds: number;
  /** New attempts and restarts in place. */
  restarts: number;
  /** Times that a person had to resume the run. */
  personNeeded: number;
}
