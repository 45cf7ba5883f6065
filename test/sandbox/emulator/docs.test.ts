import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { emulatorRules, withGenerated } from '../../../scripts/emulator-page';

const ROOT = path.join(__dirname, '..', '..', '..');

test('docs/emulator.md says what the rules say', () => {
  const text = readFileSync(path.join(ROOT, 'docs/emulator.md'), 'utf8');
  expect(withGenerated(text)).toBe(text);
});

test.each(emulatorRules())('$name names the page of AWS that it follows and has a test', ({ name, sources }) => {
  expect(sources.join()).toMatch(/https:\/\/(docs\.aws\.amazon\.com|repost\.aws)\//);
  const tests = readdirSync(path.join(__dirname, '..')).filter((file) => /^rules-of-.*\.test\.ts$/.test(file));
  expect(tests.map((file) => readFileSync(path.join(__dirname, '..', file), 'utf8')).join()).toContain(name);
});

test('the action facts of the emulator are those of the reference that the templates are held against', () => {
  interface Facts {
    resources: string[];
    keys: string[];
  }
  const read = (file: string) => JSON.parse(readFileSync(path.join(ROOT, file), 'utf8'));
  const { editions } = read('test/fixtures/service-authorization.json') as {
    editions: { actions: Record<string, Facts> }[];
  };
  const { withoutResource, keys } = read('lib/sandbox/emulator/slipway_rules/actions.json');
  const names = [...new Set(editions.flatMap(({ actions }) => Object.keys(actions)))].sort();
  const facts = (name: string) => editions.flatMap(({ actions }) => actions[name] ?? []);
  expect(withoutResource).toEqual(names.filter((name) => facts(name).some(({ resources }) => resources.length === 0)));
  expect(keys).toEqual(
    Object.fromEntries(names.map((name) => [name, [...new Set(facts(name).flatMap((each) => each.keys))].sort()])),
  );
});
