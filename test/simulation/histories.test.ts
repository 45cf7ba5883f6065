import { expect, test } from 'vitest';
import { INVARIANTS } from '../../lib/simulation';
import { playHistories } from '../../lib/simulation/histories/histories';
import { loadScenario, readScenario } from '../../lib/simulation/scenario/load';
import { ENVIRONMENT } from './support';

/** Fresh ones each time; a failure prints its seed, and HISTORIES_SEED plays it again. */
const SEED = Number(process.env.HISTORIES_SEED ?? Math.floor(Math.random() * 1_000_000_000));
const COUNT = Number(process.env.HISTORIES ?? 100);

const noFiles = (file: string): string => {
  throw new Error(`no file ${file}`);
};

function scenarioOf(more: object) {
  const { value, issues } = readScenario({ schema: 1, environment: ENVIRONMENT, ...more }, noFiles);
  if (!value) throw new Error(issues.map(({ message }) => message).join('\n'));
  return value;
}

test(`${COUNT} drawn histories break no invariant (HISTORIES_SEED=${SEED})`, { timeout: 3_600_000 }, async () => {
  const scenario = scenarioOf({ random: { runs: 2, faultsPerDay: 24 }, until: '8h' });
  const { result } = await playHistories(scenario, noFiles, { seed: SEED, histories: COUNT });
  const broken = result.invariants.filter(({ holds }) => !holds);
  expect(broken, `--seed ${result.seed}\n${result.shrunk ?? ''}`).toEqual([]);
});

test('a failing history is shrunk to a file that fails alike', async () => {
  // A quota of 0 and a code that fails at once: control refuses nothing of it, and the run fails. The rate makes ticks late.
  const scenario = scenarioOf({
    rates: { 'ssm:GetParameter': 0.001 },
    random: { runs: 3, faultsPerDay: 12 },
    until: '6h',
  });
  const { result } = await playHistories(scenario, noFiles, { seed: 3, histories: 1 });
  expect(result.histories).toEqual({ played: 1, failed: 1, firstFailedSeed: 3 });
  const again = loadScenario(result.shrunk ?? '', noFiles);
  expect(again.issues).toEqual([]);
  const first = result.invariants.find(({ holds }) => !holds)?.name;
  const played = await playHistories(again.value ?? scenario, noFiles, { seed: 3 });
  expect(played.result.invariants.filter(({ holds }) => !holds).map(({ name }) => name)).toContain(first);
  expect(INVARIANTS).toContain(first);
});
