// Writes the tables of docs/reference/run-file.md and environment-file.md from the schemas. test/docs/field-tables.test.ts fails when
// they are stale.
import { readFileSync, writeFileSync } from 'node:fs';
import { withFields } from './field-tables';

for (const kind of ['run', 'environment'] as const) {
  const file = `docs/reference/${kind}-file.md`;
  writeFileSync(file, withFields(kind, readFileSync(file, 'utf8')));
}
