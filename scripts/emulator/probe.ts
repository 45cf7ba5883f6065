import type { Observation } from './recorded';
import type { TableWorld } from './world';

/** A defect of version 0.1.0 and how to see it. */
export interface Probe {
  /** Number in the list of findings about 0.1.0. */
  finding: number;
  /** The defect in one sentence. */
  defect: string;
  observe(world: TableWorld, deployed: Deployed): Promise<Observation>;
}

/** The environment that stays deployed while the probes look. */
export interface Deployed {
  name: string;
}

/** The first part of a message that matches, or its end. */
export function excerpt(text: string, pattern: RegExp): string {
  return (pattern.exec(text)?.[0] ?? text.slice(-160)).replaceAll('|', '/').trim();
}

/** `accepted`, or the name of the error that a call ends with. */
export const answerOf = (call: Promise<unknown>): Promise<string> =>
  call.then(
    () => 'accepted',
    (error: Error) => error.name,
  );
