import { hasErrors } from '../../../lib/core/config/issue';
import type { SimulationResult } from '../result';
import { resolveScenario, type Scenario } from '../scenario/load';
import type { ScenarioFile } from '../scenario/schema';
import { writeScenario } from '../scenario/write';
import { type Play, play } from '../simulate';
import { draw } from './draw';
import { shrink } from './shrink';

/** Which histories to play, and their options. */
export interface HistoryOptions {
  /** Seed of the first history. @default 1 */
  seed?: number;
  /** Number of seeds to play, one after the other. @default - one, without a count in the result */
  histories?: number;
  /** Whether a failing history is shrunk. @default true */
  shrinks?: boolean;
  /** Called, and awaited, after each history. @default - no callback */
  onPlayed?: (seed: number, result: SimulationResult) => void | Promise<void>;
}

/** Plays the seeds of a scenario. Returns the result of the first that fails, or of the last. */
export async function playHistories(
  scenario: Scenario,
  read: (path: string) => string,
  options: HistoryOptions = {},
): Promise<Play> {
  const { seed = 1, histories, shrinks = true } = options;
  const count = histories ?? 1;
  let failed = 0;
  let first: Play | undefined;
  let last: Play | undefined;
  for (let next = seed; next < seed + count; next++) {
    last = await play(concrete(scenario, next, read), next);
    await options.onPlayed?.(next, last.result);
    if (last.result.ok) continue;
    failed += 1;
    first ??= last;
  }
  const shown = first ?? last;
  if (!shown) throw new Error('at least one history must be played');
  const { result } = shown;
  const counted =
    histories === undefined
      ? {}
      : { histories: { played: count, failed, firstFailedSeed: first?.result.seed ?? null } };
  const isDrawn = histories !== undefined || scenario.random !== undefined;
  const shrunk = first && shrinks && isDrawn ? { shrunk: await shrunkText(shown, read) } : {};
  return { ...shown, result: { ...result, ...counted, ...shrunk } };
}

/** The scenario with the entries that the seed draws. */
export function concrete(scenario: Scenario, seed: number, read: (path: string) => string): Scenario {
  if (!scenario.random) return scenario;
  const drawn = draw(scenario.source, scenario.environment, seed, scenario.until);
  const { value, issues } = resolveScenario(drawn, read);
  if (!value)
    throw new Error(`what seed ${seed} draws is no scenario: ${issues.map(({ message }) => message).join('; ')}`);
  return value;
}

/**
 * Maximum number of function calls during shrinking: about two minutes of work. It is not a time limit, so that the same seed always prints
 * the same.
 */
const MAX_CALLS = 2_000_000;

/** The text of the shortest scenario that violates the first invariant that the play violated. */
async function shrunkText({ result, world }: Play, read: (path: string) => string): Promise<string> {
  const broken = result.invariants.find(({ holds }) => !holds)?.name;
  let calls = 0;
  const fails = async (candidate: ScenarioFile): Promise<boolean> => {
    if (calls > MAX_CALLS) return false;
    const { value, issues } = resolveScenario(candidate, read);
    if (!value || hasErrors(issues)) return false;
    const again = await play(value, result.seed);
    calls += Object.values(again.result.calls).reduce((sum, { count }) => sum + count, 0);
    return again.result.invariants.some(({ name, holds }) => name === broken && !holds);
  };
  const file = { ...world.scenario.source, until: world.scenario.until };
  return writeScenario(await shrink(file, fails));
}
