// What makes a run small, whole, on its own instances and on those of the embedded AWS, and what stays of the run. After a change that is meant:
// UPDATE_FIXTURES=1 npx vitest run --project unit test/core/config/smoke-cases.test.ts, and read the difference.
import path from 'node:path';
import { loadRun } from '../../../lib/core/config/load';
import { type SmokePlace, smokeOverrides } from '../../../lib/core/config/smoke';
import { runOf } from '../../support/runs';
import { testCases } from '../../support/tables';

interface Case {
  name?: string;
  /** Options of the run file beside those of the table, as `--set` takes them. */
  set: string[];
  [outcome: string]: unknown;
}

const nameOf = (override: string): string => override.slice(0, override.indexOf('='));

testCases<Case, { file: object; cases: Case[] }>(path.join(__dirname, 'smoke-cases'), ({ file }, { set }) => {
  const { value } = loadRun(JSON.stringify(file), set);
  if (!value) throw new Error(`no run: ${set.join(' ')}`);
  const base = runOf(file);
  const at = (place: SmokePlace) => {
    const [usual, made] = [smokeOverrides(base, place), smokeOverrides(value, place)];
    if (set.length === 0) return made;
    const named = new Set(made.map(nameOf));
    const lost = usual.filter((one) => !named.has(nameOf(one))).map((one) => `without ${nameOf(one)}`);
    return [...made.filter((one) => !usual.includes(one)), ...lost];
  };
  return { account: at('account'), sandbox: at('sandbox') };
});
