import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';

const LIB = path.join(__dirname, '../../../lib');

/** A command about a run in a template, which works only in a shell that has the environment and the region already. */
const INCOMPLETE = /slipway (status|logs|stop|resume|report|shell|delete) \$\{/;

test('messages about a run name its commands with environment and region', () => {
  const found = readdirSync(LIB, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .flatMap((file) =>
      readFileSync(path.join(LIB, file), 'utf8')
        .split('\n')
        .filter((line) => INCOMPLETE.test(line))
        .map((line) => `${file}: ${line.trim()}`),
    );
  expect(found).toEqual([]);
});
