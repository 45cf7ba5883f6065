import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { proseOfRules, rulePages } from '../../../scripts/rule-pages';

const FOLDER = path.join(__dirname, '../../../docs/rules');

test('docs/rules is what the rules say; npm run docs:rules writes it', () => {
  const pages = rulePages();
  const files = readdirSync(FOLDER, { recursive: true, encoding: 'utf8' }).filter((f) => f.endsWith('.md'));
  expect(files.sort()).toEqual([...pages.keys()].sort());
  for (const [name, text] of pages) expect(readFileSync(path.join(FOLDER, name), 'utf8')).toBe(text);
});

test('every rule says what it requires, why, and from which source', () => {
  const wrong = [...proseOfRules()].filter(
    ([, { what, why }]) => !what.endsWith('.') || /^`[\w-]+\/[\w-]+`,/.test(what) || !/\. Source: .+\.$/.test(why),
  );
  expect(wrong).toEqual([]);
});
