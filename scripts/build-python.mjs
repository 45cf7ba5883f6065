// `npm run build:python`: bundles the report's script into the Python client and builds its wheel into dist/python.
import { execFileSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import path from 'node:path';
import { pythonEnvironment } from './python-env.mjs';

process.chdir(path.resolve(import.meta.dirname, '..'));
rmSync('dist/python', { recursive: true, force: true });
rmSync('clients/python/build', { recursive: true, force: true });
execFileSync(process.execPath, ['scripts/build.mjs', 'python'], { stdio: 'inherit' });
// The packages of requirements-dev.txt include the build backend; nothing is downloaded.
const WHEEL =
  '-m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir dist/python clients/python';
execFileSync(pythonEnvironment(), WHEEL.split(' '), { stdio: 'inherit' });
