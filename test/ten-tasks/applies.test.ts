// The patches of CONTRIBUTING.md's ten tasks fit the code as it is; test/long/ten-tasks.test.ts applies them and runs the tests.
import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';

const ROOT = path.join(__dirname, '../..');
const PATCHES = readdirSync(__dirname).filter((file) => file.endsWith('.patch'));

test.each(PATCHES)('%s', (file) => {
  const patch = path.join(__dirname, file);
  expect(() => execFileSync('git', ['apply', '--check', patch], { cwd: ROOT, stdio: 'pipe' })).not.toThrow();
});

test('there are ten', () => {
  expect(PATCHES).toHaveLength(10);
});
