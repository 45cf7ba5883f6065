// Writes docs/rules: the index, and in the page of each topic the levels and the examples, from the rules and the tables of their tests. What a
// rule requires and why is written by hand, and stays. test/core/rules/docs.test.ts fails when the pages are stale, or of no topic.
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { rulePages } from './rule-pages';

for (const [name, text] of rulePages()) writeFileSync(path.join(__dirname, '..', 'docs', 'rules', name), text);
