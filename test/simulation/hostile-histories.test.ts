import { expect, test } from 'vitest';
import { playHistories } from '../../tools/simulation/histories/histories';
import { readScenario } from '../../tools/simulation/scenario/load';
import { longDraws } from '../support/draws';
import { ENVIRONMENT } from './support';

/** The same seeds in each run of the tests; `HOSTILE_SEED` plays others, and `npm run test:long` more of them. */
const SEED = Number(process.env.HOSTILE_SEED ?? 530_000);
const COUNT = longDraws(5, 15);

test(`${COUNT} histories with hostile faults break no invariant (HOSTILE_SEED=${SEED})`, {
  timeout: 3_600_000,
  retry: 0,
}, async () => {
  const random = { runs: 6, faultsPerDay: 12, hostilePerDay: 12 };
  const noFiles = (file: string): string => {
    throw new Error(`no file ${file}`);
  };
  const { value } = readScenario({ schema: 1, environment: ENVIRONMENT, random, until: '48h' }, noFiles);
  if (!value) throw new Error('the scenario was not read');
  const { result } = await playHistories(value, noFiles, { seed: SEED, histories: COUNT });
  const broken = result.invariants.filter(({ holds }) => !holds);
  expect(broken, `--seed ${result.seed}\n${result.shrunk ?? ''}`).toEqual([]);
});
