// Writes the tables of docs/reference/run-file.md, environment-file.md and scenario-file.md from the schemas. test/docs/field-tables.test.ts fails when
// they are stale.
import { readFileSync, writeFileSync } from 'node:fs';
import { KINDS, withFields } from './field-tables';

for (const kind of KINDS) {
  const file = `docs/reference/${kind}-file.md`;
  writeFileSync(file, withFields(kind, readFileSync(file, 'utf8')));
}
