import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { runCli } from '../../support/run-cli';

test.each(['run', 'environment'])('schema/%s.schema.json is what `slipway tools schema` prints', async (kind) => {
  const file = readFileSync(path.join(__dirname, `../../../schema/${kind}.schema.json`), 'utf8');
  const { stdout } = await runCli('tools', 'schema', kind);
  expect(JSON.parse(file)).toEqual(JSON.parse(stdout));
});
