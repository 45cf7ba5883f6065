/** The data of a simulation page. Times are seconds since the start of the scenario. */
export interface SimulationPage {
  title: string;
  seed: number;
  untilSeconds: number;
  runs: RunLane[];
  /** Number of waiting runs and of instances in training, at each change. */
  load: { at: number; waiting: number; instances: number }[];
  invariants: { name: string; holds: boolean; at?: number; evidence?: string }[];
}

/** State of a run in a time span: waiting in the queue, waiting for instances, training, or interrupted. */
export type SpanKind = 'queue' | 'capacity' | 'training' | 'interrupted';

/** The lane of one run on a simulation page. */
export interface RunLane {
  id: string;
  team: string;
  state: string;
  reason: string;
  attempts: number;
  keptSteps: number;
  lostSteps: number;
  billedUsd: number;
  bookedUsd: number | null;
  spans: { from: number; to: number; kind: SpanKind }[];
  /** Lines of its timeline, except those that only report progress. */
  decisions: { at: number; what: string; text: string }[];
  notices: { at: number; text: string }[];
}
