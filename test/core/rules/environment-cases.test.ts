// What the rules say of an environment file, case by case, whole, on both sides of each limit. After a change that is meant:
// UPDATE_FIXTURES=1 npx vitest run --project unit test/core/rules/environment-cases.test.ts, and read the difference.
import path from 'node:path';
import { loadEnvironment } from '../../../lib/core/config/load';
import { checkEnvironment } from '../../../lib/core/rules/environment';
import { testCases } from '../../support/tables';

interface Case {
  name?: string;
  /** Fields of the file beside its name and region. */
  file: object;
  [outcome: string]: unknown;
}

testCases<Case, { base: object; cases: Case[] }>(path.join(__dirname, 'environment-cases'), ({ base }, given) => {
  const { value, issues } = loadEnvironment(JSON.stringify({ ...base, ...given.file }));
  if (!value) throw new Error(JSON.stringify(issues));
  return { issues: checkEnvironment(value).map(({ level, rule, message }) => `${level} ${rule} ${message}`) };
});
