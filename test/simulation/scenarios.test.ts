import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test, vi } from 'vitest';
import { readScenarioFile, simulate } from '../../tools/simulation';
import { play } from '../../tools/simulation/simulate';
import { CASES, NOT_COMPARED, OTHERS } from '../long/agreement/cases';
import { outcomeOf } from './outcome';

/** A simulated day takes a second; on a busy machine several. */
vi.setConfig({ testTimeout: 120_000 });

const FOLDER = path.join(__dirname, '..', 'scenarios');
const FILES = readdirSync(FOLDER).filter((file) => file.endsWith('.yaml'));

/** `vitest -u` writes outcomes again: read the difference as you would read code. */
test.each(FILES)('every invariant holds in %s, and it comes to the outcome beside it', async (file) => {
  const { value, issues } = readScenarioFile(path.join(FOLDER, file));
  if (!value) throw new Error(issues.map(({ message }) => message).join('\n'));
  const played = await play(value, 1);
  expect(played.result.invariants.filter(({ holds }) => !holds)).toEqual([]);
  await expect(outcomeOf(played)).toMatchFileSnapshot(path.join(FOLDER, 'outcomes', file));
});

test('every outcome belongs to a scenario', () => {
  expect(readdirSync(path.join(FOLDER, 'outcomes')).sort()).toEqual([...FILES].sort());
});

test('the same file and seed give the same bytes', async () => {
  const file = path.join(FOLDER, 'people.yaml');
  const [first, second] = [await simulate(file, { seed: 7 }), await simulate(file, { seed: 7 })];
  expect(JSON.stringify(first)).toBe(JSON.stringify(second));
  expect(JSON.stringify(await simulate(file, { seed: 8 }))).not.toBe(JSON.stringify(first));
});

test('every scenario says in its first line what it is about', () => {
  const firstLines = FILES.map((file) => readFileSync(path.join(FOLDER, file), 'utf8').split('\n')[0] ?? '');
  expect(firstLines.filter((line) => !/^# .{20,}/.test(line))).toEqual([]);
});

test('every scenario is played in the sandbox too, or is in a list that says why not', () => {
  const named = [
    ...[...CASES, ...NOT_COMPARED].map(({ scenario }) => `${scenario}.yaml`),
    ...Object.keys(OTHERS).map((name) => `${name}.yaml`),
  ];
  expect(named.sort()).toEqual([...FILES].sort());
});
