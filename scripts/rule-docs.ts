// Writes docs/rules: one page a topic and an index, from the rules themselves and the tables of their tests. test/core/rules/docs.test.ts fails when they are stale.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { rulePages } from './rule-pages';

const folder = path.join(__dirname, '..', 'docs', 'rules');
rmSync(folder, { recursive: true, force: true });
for (const [name, text] of rulePages()) {
  const file = path.join(folder, name);
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, text);
}
