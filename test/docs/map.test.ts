// The map of the folders leads to every folder with code: a question "where is" ends there, or in the file that it names.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { ROOT, repositoryFiles } from '../support/repository-files';

test('the map names every folder with code', () => {
  const map = readFileSync(path.join(ROOT, 'docs/contributing/map.md'), 'utf8');
  const named = new Set([...map.matchAll(/`([^`\n]+)`/g)].map((match) => match[1]));
  const code = repositoryFiles('lib', 'containers', 'tools', 'bench', 'clients/python/src').filter((file) =>
    /\.(ts|py)$/.test(file),
  );
  const folders = [...new Set(code.map((file) => path.dirname(file)))];
  expect(folders.length).toBeGreaterThan(100);
  expect(folders.filter((folder) => !named.has(folder))).toEqual([]);
});
