import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { playHistories, readerBeside, readScenarioFile } from '../../lib/simulation';
import { outcomeOf } from '../../test/simulation/outcome';

/**
 * What looks for mutants: every scenario of test/scenarios, then drawn histories. Prints the first invariant that does not hold, or the
 * first scenario that comes to another outcome than the one that is kept.
 * Arguments: the folder of scenarios, a scenario with `random`, the number of histories.
 */
async function main([folder = '', drawn = '', count = '0']: readonly string[]): Promise<void> {
  const scenarios = readdirSync(folder).filter((file) => file.endsWith('.yaml'));
  for (const name of scenarios) await look(path.join(folder, name), name, 1);
  for (let seed = 1; seed <= Number(count); seed++) await look(drawn, `history ${seed}`, seed);
}

async function look(file: string, name: string, seed: number): Promise<void> {
  const { value, issues } = readScenarioFile(file);
  if (!value) throw new Error(issues.map(({ message }) => message).join('\n'));
  const played = await playHistories(value, readerBeside(file), { seed, shrinks: false });
  const broken = played.result.invariants.find(({ holds }) => !holds);
  if (broken) found(`${broken.name} in ${name}`);
  const kept = path.join(path.dirname(file), 'outcomes', name);
  if (existsSync(kept)) compare(name, readFileSync(kept, 'utf8'), outcomeOf(played));
}

function compare(name: string, kept: string, outcome: string): void {
  if (kept === outcome) return;
  const [before, after] = [kept.split('\n'), outcome.split('\n')];
  const at = before.findIndex((line, i) => line !== after[i]);
  found(`another outcome of ${name}, line ${at + 1}: ${after[at]?.trim() ?? 'it ends there'}`);
}

function found(what: string): never {
  process.stdout.write(`${what}\n`);
  process.exit(1);
}

main(process.argv.slice(2)).catch((error: Error) => {
  process.stdout.write(`it breaks off: ${error.message.split('\n')[0]}\n`);
  process.exit(1);
});
