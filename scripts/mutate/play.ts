import { readdirSync } from 'node:fs';
import path from 'node:path';
import { playHistories, readerBeside, readScenarioFile } from '../../lib/simulation';

/**
 * What looks for mutants: every scenario of test/scenarios, then drawn histories. Prints the first invariant that does not hold.
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
  const { result } = await playHistories(value, readerBeside(file), { seed, shrinks: false });
  const broken = result.invariants.find(({ holds }) => !holds);
  if (!broken) return;
  process.stdout.write(`${broken.name} in ${name}\n`);
  process.exit(1);
}

main(process.argv.slice(2)).catch((error: Error) => {
  process.stdout.write(`it breaks off: ${error.message.split('\n')[0]}\n`);
  process.exit(1);
});
