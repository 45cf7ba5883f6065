// No identifier contains a word that the glossary retired. Other languages than TypeScript, Python and shell have no identifiers of ours.
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { parseAst } from 'vitest/node';

const ROOT = path.join(__dirname, '../..');
const FOLDERS = ['bench', 'bin', 'clients', 'containers', 'lib', 'scripts', 'tools'];

/**
 * Identifiers that keep a retired word: keys of stored items, of `--json` output and of scenario files, which people's scripts read, by
 * file.
 */
const KEPT: Readonly<Record<string, readonly string[]>> = {
  'lib/report/read/log-lines.ts': ['looks'],
  'lib/report/run/run-report.ts': ['looks'],
  'lib/control/reconcile/queue/preempt-runs.ts': ['rung'],
  'lib/core/lifecycle/intent.ts': ['rung'],
  'lib/core/lifecycle/phases/launch.ts': ['rung'],
  'tools/simulation/histories/draw-hostile.ts': ['beats'],
  'tools/simulation/invariants/happened/as-happened.ts': ['beats'],
  'tools/simulation/invariants/invariant.ts': ['beats'],
  'tools/simulation/scenario/schema.ts': ['beats', 'beatsWithout'],
  'tools/simulation/world/faults/job-faults.ts': ['beats', 'beatsWithout'],
};

/** The first column of the table "Retired words", which lists all forms of a word. */
function retiredWords(): Set<string> {
  const page = readFileSync(path.join(ROOT, 'docs/contributing/glossary.md'), 'utf8');
  const table = page.split('\n## Retired words\n')[1]?.split('\n## ')[0] ?? '';
  const rows = table.split('\n').filter((line) => line.startsWith('| ') && !line.startsWith('| word'));
  return new Set(
    rows.flatMap(
      (row) =>
        row
          .split('|')[1]
          ?.split(',')
          .map((word) => word.trim()) ?? [],
    ),
  );
}

const RETIRED = retiredWords();
const partsOf = (name: string): string[] =>
  (name.match(/[A-Z]+(?![a-z])|[A-Z]?[a-z]+/g) ?? []).map((part) => part.toLowerCase());
const isRetired = (name: string): boolean => partsOf(name).some((part) => RETIRED.has(part));

/** Names in a syntax tree; a key in quotes is not among them. */
function namesIn(node: unknown): string[] {
  if (typeof node !== 'object' || node === null) return [];
  const { type, name } = node as { type?: string; name?: unknown };
  const own = /Identifier$/.test(type ?? '') && typeof name === 'string' ? [name] : [];
  return [...own, ...Object.values(node).flatMap(namesIn)];
}

/** Python and shell without comments and strings. */
const codeOf = (text: string): string =>
  text
    .replace(/"""[\s\S]*?"""|'''[\s\S]*?'''/g, '')
    .replace(/"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'/g, '')
    .replace(/#.*/g, '');

function identifiersOf(file: string): string[] {
  const text = readFileSync(path.join(ROOT, file), 'utf8');
  if (/\.(py|sh)$/.test(file)) return codeOf(text).match(/[A-Za-z_]\w*/g) ?? [];
  return namesIn(parseAst(text, { lang: 'ts' }));
}

const files = FOLDERS.flatMap((folder) =>
  readdirSync(path.join(ROOT, folder), { recursive: true, encoding: 'utf8' }).map((name) => path.join(folder, name)),
).filter((file) => /\.(ts|mts|mjs|py|sh)$/.test(file) && !/node_modules|\.venv/.test(file));

test('the glossary lists retired words', () => {
  expect(RETIRED.size).toBeGreaterThan(0);
  expect(isRetired(`a_${[...RETIRED][0]}`)).toBe(true);
});

test('no identifier and no file name contains a retired word', () => {
  const found = files.flatMap((file) => {
    const kept = new Set(KEPT[file]);
    const names = [...identifiersOf(file), path.basename(file).replace(/\..*/, '')];
    return [...new Set(names)].filter((name) => isRetired(name) && !kept.has(name)).map((name) => `${file}: ${name}`);
  });
  expect(found).toEqual([]);
});

test('every exception is still needed', () => {
  const unused = Object.entries(KEPT).flatMap(([file, names]) => {
    const present = new Set(identifiersOf(file).filter(isRetired));
    return names.filter((name) => !present.has(name)).map((name) => `${file}: ${name}`);
  });
  expect(unused).toEqual([]);
});
