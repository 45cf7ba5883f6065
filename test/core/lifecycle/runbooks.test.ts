import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { CLASS_POLICY } from '../../../lib/core/lifecycle/budgets';

const ROOT = path.join(__dirname, '..', '..', '..');
const PAGES = path.join(ROOT, 'docs', 'runbooks');
const pageOf = (runbook: string) => path.join(PAGES, `${runbook}.md`);

test.each(Object.entries(CLASS_POLICY))('failure class %s has its page', (_, { runbook }) => {
  expect(existsSync(pageOf(runbook))).toBe(true);
});

test('every page that the lifecycle names exists, and every page is named', () => {
  const folder = path.join(ROOT, 'lib', 'core', 'lifecycle');
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));
  const sources = files.map((file) => readFileSync(path.join(folder, file), 'utf8'));
  const text = sources.join('\n');
  const pages = readdirSync(PAGES)
    .filter((f) => f !== 'README.md')
    .map((f) => f.replace('.md', ''));
  const named = [...text.matchAll(/runbook: '([a-z-]+)'/g)].map((m) => m[1] ?? '');
  expect(named.length).toBeGreaterThan(20);
  expect(named.filter((name) => !pages.includes(name))).toEqual([]);
  expect(pages.filter((name) => !text.includes(`'${name}'`))).toEqual([]);
});
