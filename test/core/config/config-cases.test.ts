// What a run file names as its config.json, and the file with the text of it in that place. After a change that is meant:
// UPDATE_FIXTURES=1 npx vitest run --project unit test/core/config/config-cases.test.ts, and read the difference.
import path from 'node:path';
import { inlineConfig, namedConfig } from '../../../lib/core/config/inline';
import { testCases } from '../../support/tables';

interface Case {
  /** Text of the run file. */
  text: string;
  set?: string[];
  /** What it names; null: nothing. */
  names?: string | null;
  /** The file and its overrides once the text is in it. */
  inlined?: { text: string; overrides: string[] };
  [outcome: string]: unknown;
}

testCases<Case, { config: string; cases: Case[] }>(
  path.join(__dirname, 'config-cases'),
  ({ config }, { text, set = [] }) => ({
    names: namedConfig(text, set) ?? null,
    inlined: inlineConfig(text, set, config),
  }),
);
