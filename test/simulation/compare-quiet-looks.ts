import { readdirSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'vitest';
import { readerBeside, readScenarioFile } from '../../lib/simulation';
import { concrete } from '../../lib/simulation/histories/histories';
import type { Scenario } from '../../lib/simulation/scenario/load';
import { type Play, play } from '../../lib/simulation/simulate';
import { timelineOf } from '../../lib/simulation/timeline';

const FOLDER = path.join(__dirname, '..', 'scenarios');

/** Files of all scenarios. */
export const SCENARIOS = readdirSync(FOLDER).filter((file) => file.endsWith('.yaml'));

/** What both worlds must have in common: results, counted calls, ticks, records and timelines. */
const outcomeOf = ({ result, world }: Play) => ({
  ...result,
  records: world.runs.map(({ record }) => record),
  timelines: world.runs.map((one) => timelineOf(world, one)),
});

/** Plays a scenario with and without its quiet looks, and gives the number of looks that one of the two left out. */
export async function compareQuietLooks(scenario: Scenario, seed: number): Promise<number> {
  const skipping = await play(scenario, seed);
  const whole = await play(scenario, seed, { skipsQuietLooks: false });
  expect(whole.world.quiet.count).toBe(0);
  expect(outcomeOf(skipping)).toEqual(outcomeOf(whole));
  return skipping.world.quiet.count;
}

/** The same for one of SCENARIOS. */
export function compareScenario(name: string): Promise<number> {
  const file = path.join(FOLDER, name);
  const { value } = readScenarioFile(file);
  return compareQuietLooks(concrete(value as Scenario, 1, readerBeside(file)), 1);
}
