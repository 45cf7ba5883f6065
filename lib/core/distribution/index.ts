import type { RunSpec } from '../config/run-spec';
import * as strategies from './strategies';
import type { Strategy } from './strategy';

/** All distribution strategies. */
export const STRATEGIES: readonly Strategy[] = Object.values(strategies);

/** Values of `distribution.library`. */
export const LIBRARIES: readonly string[] = [...new Set(STRATEGIES.flatMap((s) => s.libraries))];

/** The strategy that handles `run`; undefined when its library is unknown (a rule reports it). */
export function findStrategy(run: RunSpec): Strategy | undefined {
  const { library, launcher, collectives } = run.distribution;
  return STRATEGIES.find((s) => s.matches(library, launcher, collectives, run.image.kind));
}
