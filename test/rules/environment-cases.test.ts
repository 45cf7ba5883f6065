// What the rules say of an environment file, case by case, whole, on both sides of each limit. After a change that is meant:
// UPDATE_FIXTURES=1 npx vitest run --project unit test/rules/environment-cases.test.ts, and read the difference.
import path from 'node:path';
import { checkEnvironment } from '../../lib/rules/environment';
import { loadEnvironment } from '../../lib/spec/load';
import { testCases } from '../support/tables';

interface Case {
  name?: string;
  /** Fields of the file beside its name and region. */
  file: object;
  [outcome: string]: unknown;
}

testCases<Case, { base: object; cases: Case[] }>(path.join(__dirname, 'environment-cases'), ({ base }, given) => {
  const { value, issues } = loadEnvironment(JSON.stringify({ ...base, ...given.file }));
  if (!value) throw new Error(JSON.stringify(issues));
  return { says: checkEnvironment(value).map(({ level, rule, message }) => `${level} ${rule} ${message}`) };
});
