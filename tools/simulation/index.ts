import { readFileSync } from 'node:fs';
import { type HistoryOptions, playHistories } from './histories/histories';
import { readerBeside } from './reader-beside';
import type { SimulationResult } from './result';
import { type LoadedScenario, loadScenario } from './scenario/load';

export type { HistoryOptions } from './histories/histories';
export { playHistories } from './histories/histories';
export { INVARIANTS } from './invariants/judge';
export type { RunResult, SimulationResult } from './result';
export { type LoadedScenario, loadScenario, type Scenario } from './scenario/load';

/** Loads a scenario file from disk; files that it names are relative to it. */
export const readScenarioFile = (file: string): LoadedScenario =>
  loadScenario(readFileSync(file, 'utf8'), readerBeside(file));

/**
 * Plays a scenario file with the control plane's own functions on a virtual clock: no process, no port, no sleep.
 * @param file path of a scenario (docs/simulate.md)
 * @throws Error with all issues when the file is not a valid scenario
 */
export async function simulate(file: string, options: HistoryOptions = {}): Promise<SimulationResult> {
  const { value, issues } = readScenarioFile(file);
  if (!value) throw new Error(issues.map(({ message }) => message).join('\n'));
  return (await playHistories(value, readerBeside(file), options)).result;
}
