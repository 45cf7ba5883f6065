// The threat model names a test for each boundary, and these tests exist.
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { textOf } from '../support/pages';
import { ROOT } from '../support/repository-files';

const HEADER = '| threat | what prevents it | test |';

/** Rows of the tables of threats on a page, cells each. */
function threats(page: string): string[][] {
  const tables = page.split(HEADER).slice(1);
  return tables.flatMap((table) => {
    const rows = table.split('\n').slice(2);
    const end = rows.findIndex((row) => !row.startsWith('|'));
    return rows.slice(0, end).map((row) => row.split('|').map((cell) => cell.trim()));
  });
}

/** Files and names of tests that a cell cites. */
const citations = (cell: string) =>
  [...cell.matchAll(/`(test\/[^`]+)`: "([^"]+)"/g)].map(([, file = '', name = '']) => ({ file, name }));

/** Whether a file has a test of the name that is not skipped. */
function holds(file: string, name: string): boolean {
  const whole = path.join(ROOT, file);
  if (!existsSync(whole)) return false;
  const words = name.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&');
  const title = file.endsWith('.py')
    ? new RegExp(`(?<!mark\\.skip[^\\n]*\\n)^(?:async )?def ${words}\\(`, 'm')
    : new RegExp(`(?<!(?:skip|todo|skipIf\\([^)]*\\)))\\(\\s*(['"\`])${words}\\1,`);
  return title.test(readFileSync(whole, 'utf8'));
}

/** What is wrong with the threats of a page. */
function findings(page: string): string[] {
  return threats(page).flatMap(([, threat = '', , cell = '']) => {
    const cited = citations(cell);
    if (cited.length === 0 || cell.split(/; (?=`test\/)/).length !== cited.length)
      return [`${threat}: no test, or one not as file: "name"`];
    return cited
      .filter(({ file, name }) => !holds(file, name))
      .map(({ file, name }) => `${threat}: no test "${name}" in ${file}`);
  });
}

test('every threat of docs/security.md has a test that exists', () => {
  const page = textOf('docs/security.md');
  expect(threats(page).length).toBeGreaterThan(30);
  expect(findings(page)).toEqual([]);
});

test('fails: a threat without a test, and tests that are not there', () => {
  const row = (cell: string) => `${HEADER}\n|---|---|---|\n| x | y | ${cell} |\n\n`;
  expect(findings(row('by review'))).toEqual(['x: no test, or one not as file: "name"']);
  const found = findings(row('`test/docs/security.test.ts`: "never written"; `test/docs/none.test.ts`: "at all"'));
  expect(found).toEqual([
    'x: no test "never written" in test/docs/security.test.ts',
    'x: no test "at all" in test/docs/none.test.ts',
  ]);
});
