import type { Status, World } from './world';

/** What a case saw: timeline lines and calls, for the reader of the result. */
export interface Seen {
  lines: string[];
}

export interface FaultCase {
  /** Number in the table of faults (docs/faults.md). */
  n: number;
  name: string;
  /** How it was injected. */
  injected: string;
  /** Its fault strikes calls of every run, or it needs all cores: nothing else may run beside it. */
  alone?: true;
  /** Throws with what was expected and what was seen instead. */
  run(world: World, seen: Seen): Promise<void>;
}

/** Keeps the timeline of a run as what was seen. */
export function remember(seen: Seen, status: Status): void {
  const attempts = status.attempts.map((a) =>
    `${a.trainingJobName}: ${a.status} / ${a.secondaryStatus} ${a.reason}`.trim(),
  );
  seen.lines.push(...status.timeline.map((t) => `${t.what}: ${t.text}`), ...attempts);
}

export function expectEqual(what: string, actual: unknown, expected: unknown): void {
  const [got, wanted] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (got !== wanted) throw new Error(`${what}: must be ${wanted}, got ${got}`);
}

export function expectEvent(status: Status, what: string): void {
  const events = status.timeline.map((t) => t.what);
  if (!events.includes(what)) throw new Error(`timeline: must have ${what}, got ${events.join(', ')}`);
}
