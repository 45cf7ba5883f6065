import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { KINDS, withFields } from '../../scripts/field-tables';

test.each(KINDS)('docs/reference/%s-file.md has the fields of the schema', (kind) => {
  const page = readFileSync(path.join(__dirname, `../../docs/reference/${kind}-file.md`), 'utf8');
  expect(withFields(kind, page), 'npm run docs:fields').toBe(page);
});
