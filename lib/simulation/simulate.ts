import { Judge } from './invariants/judge';
import { resultOf, type SimulationResult } from './result';
import type { Scenario } from './scenario/load';
import { World } from './world/world';

/** One play of a scenario with the resulting world, from which the page is made. */
export interface Play {
  result: SimulationResult;
  world: World;
}

/** How a scenario is played. */
export interface PlayOptions {
  /** Whether invocations with a predictable outcome are played without calling the function (direct/). @default true */
  skipsQuietLooks?: boolean;
}

/** Plays a scenario once. The same scenario and seed give the same result, byte for byte. */
export async function play(scenario: Scenario, seed: number, options: PlayOptions = {}): Promise<Play> {
  const judge = new Judge();
  const world = new World(scenario, seed, judge, options);
  await world.play();
  const result = resultOf(world, seed, judge.verdicts(), judge.startMs);
  return { result, world };
}
