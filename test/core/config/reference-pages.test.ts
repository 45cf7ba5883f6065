// The annotated examples of docs/reference are files that the schemas accept.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { loadEnvironment, loadRun } from '../../../lib/core/config/load';

const examplesOf = (page: string) => {
  const text = readFileSync(path.join(__dirname, '../../../docs/reference', page), 'utf8');
  return [...text.matchAll(/```yaml\n([\s\S]*?)```/g)].map((match) => match[1] ?? '');
};

test('run-file.md', () => {
  const examples = examplesOf('run-file.md');
  expect(examples).toHaveLength(2);
  for (const text of examples) expect(loadRun(text).issues).toEqual([]);
});

test('environment-file.md', () => {
  const [text = ''] = examplesOf('environment-file.md');
  expect(loadEnvironment(text).issues).toEqual([]);
});
