import { readdirSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'vitest';
import { readerBeside, readScenarioFile } from '../../lib/simulation';
import { concrete } from '../../lib/simulation/histories/histories';
import { readScenario, type Scenario } from '../../lib/simulation/scenario/load';
import { type Play, play } from '../../lib/simulation/simulate';
import { timelineOf } from '../../lib/simulation/timeline';
import { ENVIRONMENT, LIMITS } from './support';

const FOLDER = path.join(__dirname, '..', 'scenarios');

/** Files of all scenarios. */
export const SCENARIOS = readdirSync(FOLDER).filter((file) => file.endsWith('.yaml'));

/** A scenario whose run files are all inline reads no other. */
export const noFiles = (file: string): string => {
  throw new Error(`no file ${file}`);
};

/** A scenario in the tests' environment. */
export function scenarioOf(more: object): Scenario {
  const { value, issues } = readScenario({ schema: 1, environment: ENVIRONMENT, limits: LIMITS, ...more }, noFiles);
  if (!value) throw new Error(issues.map(({ message }) => message).join('\n'));
  return value;
}

/** What both worlds must have in common: results, counted calls, ticks, records and timelines. */
const outcomeOf = ({ result, world }: Play) => ({
  ...result,
  records: world.runs.map(({ record }) => record),
  timelines: world.runs.map((one) => timelineOf(world, one)),
});

/** How often one of the two plays did without the function: looks that were only counted, at live jobs, at waiting runs, passes over the queue. */
interface Skipped {
  quiet: number;
  looks: number;
  queued: number;
  passes: number;
  /** Those of the passes in which runs wait. */
  waited: number;
}

const skippedIn = ({ world: { direct } }: Play): Skipped => ({
  quiet: direct.quiet.count,
  looks: direct.looks.count,
  queued: direct.queued.count,
  passes: direct.passes.count,
  waited: direct.passes.waited,
});

/** Plays a scenario with the function at every invocation, and without it where its course is known; both must come to the same. */
export async function compareQuietLooks(scenario: Scenario, seed: number): Promise<Skipped> {
  const skipping = await play(scenario, seed);
  const whole = await play(scenario, seed, { skipsQuietLooks: false });
  expect(skippedIn(whole)).toEqual({ quiet: 0, looks: 0, queued: 0, passes: 0, waited: 0 });
  expect(outcomeOf(skipping)).toEqual(outcomeOf(whole));
  return skippedIn(skipping);
}

/** The same for one of SCENARIOS. */
export function compareScenario(name: string): Promise<Skipped> {
  const file = path.join(FOLDER, name);
  const { value } = readScenarioFile(file);
  return compareQuietLooks(concrete(value as Scenario, 1, readerBeside(file)), 1);
}
