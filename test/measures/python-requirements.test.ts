import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';

const ROOT = path.join(__dirname, '../..');

// The Python environments share test/containers and its conftest.py.
test('all Python environments run the tests with one version of pytest', () => {
  const files = readdirSync(ROOT).filter((name) => /^requirements-.*\.txt$/.test(name));
  const pinned = files.flatMap((name) => readFileSync(path.join(ROOT, name), 'utf8').match(/^pytest==.*$/m) ?? []);
  expect(pinned.length).toBeGreaterThan(2);
  expect(new Set(pinned).size, pinned.join(', ')).toBe(1);
});
