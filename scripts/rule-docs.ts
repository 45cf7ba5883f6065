// Writes docs/rules: the index, and in the page of each topic the levels and the examples, from the rules and the tables of their tests. What a
// rule requires and why is written by hand, and stays. test/core/rules/docs.test.ts fails when the pages are stale.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { rulePages } from './rule-pages';

const folder = path.join(__dirname, '..', 'docs', 'rules');
const pages = rulePages();
rmSync(folder, { recursive: true, force: true });
for (const [name, text] of pages) {
  const file = path.join(folder, name);
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, text);
}
