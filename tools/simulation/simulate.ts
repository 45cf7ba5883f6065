import { Judge } from './invariants/judge';
import { resultOf, type SimulationResult } from './result';
import type { Scenario } from './scenario/load';
import { World } from './world/world';

/** One play of a scenario with the resulting world, from which the page is made. */
export interface Play {
  result: SimulationResult;
  world: World;
}

/** Plays a scenario once. The same scenario and seed give the same result, byte for byte. */
export async function play(scenario: Scenario, seed: number): Promise<Play> {
  const judge = new Judge();
  const world = new World(scenario, seed, judge);
  await world.play();
  const result = resultOf(world, seed, judge.verdicts(), judge.startMs);
  return { result, world };
}
