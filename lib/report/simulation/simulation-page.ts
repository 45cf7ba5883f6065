/** What a page about a simulation shows. Times are seconds since the start of the scenario. */
export interface SimulationPage {
  title: string;
  seed: number;
  untilSeconds: number;
  runs: RunLane[];
  /** How many runs waited and how many instances trained, at each change. */
  load: { at: number; waiting: number; instances: number }[];
  invariants: { name: string; holds: boolean; at?: number; evidence?: string }[];
}

/** What a run did at a time: it waited in the queue, its job waited for instances, it trained, or it was interrupted. */
export type SpanKind = 'queue' | 'capacity' | 'training' | 'interrupted';

/** A run of a simulation as its page draws it. */
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
  /** Lines of its timeline, without those that only say how far training is. */
  decisions: { at: number; what: string; text: string }[];
  notices: { at: number; text: string }[];
}
