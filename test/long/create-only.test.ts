// The extract that the laws over templates read is what AWS's resource specification says; reading all of it takes seconds.
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { createOnlyFile, FILE } from '../laws/support/create-only';

test('test/fixtures/templates/create-only.json is what scripts/create-only.ts writes', () => {
  expect(readFileSync(FILE, 'utf8')).toBe(createOnlyFile());
});
