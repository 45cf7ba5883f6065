// The templates of all examples and variants against three independent linters: cfn-lint, checkov and parliament.
import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { expect, test } from 'vitest';

const ROOT = path.join(__dirname, '../..');

test('cfn-lint, checkov and parliament find nothing but what is named with its reason', () => {
  const { status, stdout, stderr } = spawnSync(
    path.join(ROOT, 'node_modules/.bin/tsx'),
    ['scripts/lint-templates.ts'],
    { cwd: ROOT, encoding: 'utf8', maxBuffer: 1 << 28 },
  );
  expect([status, status === 0 ? '' : `${stdout}${stderr}`]).toEqual([0, '']);
});
