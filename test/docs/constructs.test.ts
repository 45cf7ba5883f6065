import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { exportsOfConstructs } from '../../scripts/constructs/exports';
import { constructsPage } from '../../scripts/constructs/page';

const found = exportsOfConstructs();

test('docs/reference/constructs.md is what the comments say; npm run docs:constructs writes it', () => {
  const page = readFileSync(path.join(__dirname, '../../docs/reference/constructs.md'), 'utf8');
  expect(page).toBe(constructsPage(found));
});

test('every public class, interface, property, attribute and method is documented, and every optional property says its default', () => {
  const undocumented = found.flatMap(({ name, kind, doc, members }) => [
    ...(doc === '' && !name.endsWith('Props') ? [name] : []),
    ...members.filter((one) => one.doc === '').map((one) => `${name}.${one.name}`),
    ...(kind === 'interface'
      ? members
          .filter((one) => one.isOptional && one.default === undefined)
          .map((one) => `${name}.${one.name}: @default`)
      : []),
  ]);
  expect(found.length).toBeGreaterThan(40);
  expect(undocumented).toEqual([]);
});
