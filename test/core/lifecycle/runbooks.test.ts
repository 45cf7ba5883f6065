import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { CLASS_POLICY } from '../../../lib/core/lifecycle/budgets';
import { runbookAddress, runbookSteps } from '../../../lib/core/lifecycle/timeline';

const ROOT = path.join(__dirname, '..', '..', '..');
const PAGE = readFileSync(path.join(ROOT, 'docs', 'runbooks.md'), 'utf8');
const SECTIONS = [...PAGE.matchAll(/^## (.+)$/gm)].map(([, name = '']) => name);

test.each(Object.entries(CLASS_POLICY))('failure class %s has its section', (_, { runbook }) => {
  expect(SECTIONS).toContain(runbook);
});

test('every section that the lifecycle names exists, is in the table of the page, and every one is named', () => {
  const folder = path.join(ROOT, 'lib', 'core', 'lifecycle');
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));
  const text = files.map((file) => readFileSync(path.join(folder, file), 'utf8')).join('\n');
  const named = [...text.matchAll(/runbook: '([a-z-]+)'/g)].map((m) => m[1] ?? '');
  expect(named.length).toBeGreaterThan(20);
  expect(named.filter((name) => !SECTIONS.includes(name))).toEqual([]);
  expect(SECTIONS.filter((name) => !text.includes(`'${name}'`))).toEqual([]);
  expect([...PAGE.matchAll(/^\| \[(.+)\]\(#\1\)/gm)].map(([, name]) => name)).toEqual(SECTIONS);
});

test('the address of a section is in the package, or on the site of the company', () => {
  expect(runbookAddress('hang')).toBe('docs/runbooks.md#hang');
  expect(runbookAddress('hang', 'https://docs.example.com/slipway/')).toBe(
    'https://docs.example.com/slipway/runbooks.html#hang',
  );
});

test.each(SECTIONS)(
  'what to do by section %s is text of whole sentences, with the id of the run in its commands',
  (name) => {
    const steps = runbookSteps(PAGE, name, 'hello-261128');
    expect(steps.length).toBeGreaterThan(0);
    expect(steps.filter((step) => !/^(\d+\.|-) \S.*[.:]$/.test(step))).toEqual([]);
    expect(steps.join('\n')).not.toMatch(/\]\(|\*\*|\bRUN\b/);
  },
);

test('what to do by a section that is not on the page is nothing', () => {
  expect(runbookSteps(PAGE, 'hangs', 'r')).toEqual([]);
  expect(runbookSteps('', 'hang', 'r')).toEqual([]);
});
