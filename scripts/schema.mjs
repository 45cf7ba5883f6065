// Writes the files of schema/; test/core/config/schema.test.ts fails when they are stale.
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';

const root = path.resolve(import.meta.dirname, '..');
for (const kind of ['run', 'environment', 'answers']) {
  const text = execFileSync(process.execPath, [path.join(root, 'dist/cli/slipway.mjs'), 'tools', 'schema', kind], {
    encoding: 'utf8',
  });
  writeFileSync(path.join(root, 'schema', `${kind}.schema.json`), text);
}
