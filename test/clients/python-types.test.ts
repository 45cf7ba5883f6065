import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { pythonCodeFiles, pythonTypes } from '../../scripts/python-types/module';

const FILE = path.join(__dirname, '../../clients/python/src/slipway/types.py');

test('types.py and _code_constants.py are what npm run python:types writes', () => {
  expect(readFileSync(FILE, 'utf8')).toBe(pythonTypes());
  expect(readFileSync(path.join(FILE, '../_code_constants.py'), 'utf8')).toBe(pythonCodeFiles());
});

test('every class can be evaluated, with all its annotations', () => {
  const script = `
import runpy, typing, sys
names = runpy.run_path(sys.argv[1])
for name in names["__all__"]:
    typing.get_type_hints(names[name], names)
print(len(names["__all__"]))`;
  expect(Number(execFileSync('python3', ['-c', script, FILE], { encoding: 'utf8' }))).toBeGreaterThan(40);
});
