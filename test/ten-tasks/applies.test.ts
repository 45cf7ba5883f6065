// The patches of CONTRIBUTING.md's ten tasks fit the code as it is; test/long/ten-tasks.test.ts applies them and runs the tests.
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';

const ROOT = path.join(__dirname, '../..');
const PATCHES = readdirSync(__dirname).filter((file) => file.endsWith('.patch'));

test.each(PATCHES)('%s', (file) => {
  const patch = path.join(__dirname, file);
  expect(() => execFileSync('git', ['apply', '--check', patch], { cwd: ROOT, stdio: 'pipe' })).not.toThrow();
});

test.each(PATCHES)('CONTRIBUTING.md names the files that %s changes', (file) => {
  const row = readFileSync(path.join(ROOT, 'CONTRIBUTING.md'), 'utf8')
    .split('\n')
    .find((line) => line.includes(`/${file})`));
  const changed = readFileSync(path.join(__dirname, file), 'utf8').matchAll(/^diff --git a\/(\S+)/gm);
  expect([...changed].map(([, name]) => name).filter((name) => !row?.includes(`\`${name}\``))).toEqual([]);
});

test('there are ten', () => {
  expect(PATCHES).toHaveLength(10);
});
