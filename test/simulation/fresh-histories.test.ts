import { randomInt } from 'node:crypto';
import { expect, test } from 'vitest';
import { playHistories } from '../../tools/simulation/histories/histories';
import { readScenario } from '../../tools/simulation/scenario/load';
import { longDraws } from '../support/draws';
import { ENVIRONMENT } from './support';

/** Histories of one run of the tests. `npm run test:long` plays more of them (test/long/drawn-laws.test.ts). */
const COUNT = Number(process.env.HISTORIES ?? longDraws(6, 20));
/** Others at each run of the tests; CI draws the same on every commit. `HISTORIES_SEED` plays them again. */
const SEED = Number(process.env.HISTORIES_SEED ?? randomInt(1_000_000_000));

const noFiles = (file: string): string => {
  throw new Error(`no file ${file}`);
};

/** Two days of six runs with 24 faults a day. What breaks is printed as the shortest scenario that still fails. */
test(`${COUNT} fresh histories break no invariant (HISTORIES_SEED=${SEED})`, {
  timeout: 3_600_000,
  retry: 0,
}, async () => {
  const random = { runs: 6, faultsPerDay: 24 };
  const { value } = readScenario({ schema: 1, environment: ENVIRONMENT, random, until: '48h' }, noFiles);
  if (!value) throw new Error('the scenario was not read');
  const { result } = await playHistories(value, noFiles, { seed: SEED, histories: COUNT });
  const broken = result.invariants.filter(({ holds }) => !holds);
  expect(broken, `--seed ${result.seed}\n${result.shrunk ?? ''}`).toEqual([]);
});
