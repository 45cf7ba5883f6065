import { expect, test, vi } from 'vitest';
import { INVARIANTS } from '../../lib/simulation';
import { playHistories } from '../../lib/simulation/histories/histories';
import { loadScenario, readScenario } from '../../lib/simulation/scenario/load';
import { ENVIRONMENT, run } from './support';

/** A simulated day takes a second; on a busy machine several. */
vi.setConfig({ testTimeout: 120_000 });

/** HISTORIES_SEED and HISTORIES play others, `npm run simulate:long` 20,000; a failure prints its seed and the shortest scenario. */
const SEED = Number(process.env.HISTORIES_SEED ?? 1);
const COUNT = Number(process.env.HISTORIES ?? 4);

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
  // The failure of run a needs a person, and nobody is told.
  const scenario = scenarioOf({
    limits: {
      'ml.p5.48xlarge for training job usage': 8,
      'ml.p4d.24xlarge for training job usage': 8,
      'ml.g5.12xlarge for training job usage': 8,
      'L-00C91CB5': 24,
    },
    faults: [
      { call: 'sns:Publish', error: 'AuthorizationError' },
      { at: '1h', job: 'a#1', ends: 'Failed', reason: 'AlgorithmError: , exit code: 1' },
    ],
    runs: [run('a', { commitEveryMinutes: 600 }), run('b')],
    random: { runs: 0, faultsPerDay: 0 },
    until: '3h',
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
