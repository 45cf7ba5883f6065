// The rule and the driver agree about every name of an entry point: the driver starts it, and the program exists.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test } from 'vitest';
import { PYTHON } from '../../../support/python';
import { BASE, issuesOf } from '../../../support/runs';

const FILES = [
  'train.py',
  'go.sh',
  'plain',
  'pkg/run.py',
  'pkg/go.sh',
  'pkg/__main__.py',
  'my-pkg/run.py',
  'bare/x.py',
];
const NAMES = [
  ...FILES,
  './train.py',
  'pkg.run',
  'pkg',
  'train',
  'pkg.none',
  'my-pkg.run',
  'bare',
  'none.py',
  'go',
  'pkg/run',
];
const SCRIPT = `
import json, subprocess, sys
sys.path.insert(0, ${JSON.stringify(path.join(__dirname, '../../../../containers/driver'))})
from slipway_driver.exit_codes import DriverError
from slipway_driver.launchers import script_command
def starts(name):
    try:
        return subprocess.run(script_command(name, None, []), cwd=sys.argv[1], capture_output=True).returncode == 0
    except DriverError:
        return False
print(json.dumps({name: starts(name) for name in json.loads(sys.argv[2])}))
`;

test('an entry point that the rule accepts is one that the driver starts, and no other', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'slipway-entry-'));
  for (const name of FILES) {
    mkdirSync(path.dirname(path.join(folder, name)), { recursive: true });
    writeFileSync(path.join(folder, name), '');
  }
  const started = JSON.parse(execFileSync(PYTHON, ['-c', SCRIPT, folder, JSON.stringify(NAMES)], { encoding: 'utf8' }));
  const codeFolder = { files: FILES.map((name) => ({ name, bytes: 0, isExecutable: false })), problems: [] };
  const accepted = (entryPoint: string) =>
    issuesOf({ ...BASE, code: { source: './src', entryPoint } }, 'code/folder', { codeFolder }).length === 0;
  expect(Object.fromEntries(NAMES.map((name) => [name, accepted(name)]))).toEqual(started);
});
