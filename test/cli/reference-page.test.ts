import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { program } from '../../lib/cli/main';
import { processTerminal } from '../../lib/cli/terminal';
import { referencePage } from '../../scripts/reference-page';

test('docs/reference/command-line.md is what the command line says of itself; if not, npm run docs:cli', () => {
  const written = readFileSync(path.join(__dirname, '../../docs/reference/command-line.md'), 'utf8');
  expect(written).toBe(referencePage(program(processTerminal, () => undefined)));
});
