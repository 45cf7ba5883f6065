import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { withGenerated } from '../../../scripts/environment-tables';

test('docs/environment.md has the costs and the changes as they are; npm run docs:environment writes them', () => {
  const text = readFileSync('docs/environment.md', 'utf8');
  expect(withGenerated(text)).toBe(text);
});
