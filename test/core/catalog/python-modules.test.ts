// Python itself says which module it would import in a folder that has a file for every name of the table.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test } from 'vitest';
import { IMAGE_PACKAGES, STANDARD_MODULES } from '../../../lib/core/catalog/python-modules';
import { PYTHON } from '../../support/python';

test('a file beside the script takes the place of each module of the table, and the standard library has each', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'slipway-modules-'));
  const names = [...STANDARD_MODULES, ...IMAGE_PACKAGES];
  writeFileSync(
    path.join(folder, 'script.py'),
    [
      'import sys',
      `names = ${JSON.stringify(names)}`,
      'loaded = set(sys.modules)',
      'known = sys.stdlib_module_names',
      'from importlib.machinery import PathFinder',
      'for name in names:',
      '    spec = PathFinder.find_spec(name, sys.path)',
      '    print(name, spec is not None and spec.origin.startswith(sys.path[0]) and name not in loaded, name in known)',
    ].join('\n'),
  );
  for (const name of names) writeFileSync(path.join(folder, `${name}.py`), '');
  const lines = execFileSync(PYTHON, ['-S', path.join(folder, 'script.py')], { encoding: 'utf8' })
    .trim()
    .split('\n');
  const expected = names.map((name) => `${name} True ${STANDARD_MODULES.has(name) ? 'True' : 'False'}`);
  expect(lines).toEqual(expected);
});
