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

export interface RunResult {
  /** Seconds of kept steps. */
  productiveSeconds: number;
  wallSeconds: number;
  /** New attempts and restarts in place. */
  restarts: number;
  /** Times that a person had to resume the run. */
  personNeeded: number;
}
