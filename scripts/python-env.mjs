// The Python of tests and demo in .slipway/python: made once, made again when requirements-dev.txt changes.
// `pythonEnvironment()` answers its interpreter; run as a script it prints it.
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';

const ROOT = path.resolve(import.meta.dirname, '..');
const HOME = path.join(ROOT, '.slipway', 'python');
const REQUIREMENTS = path.join(ROOT, 'requirements-dev.txt');

export function pythonEnvironment(log = (text) => process.stderr.write(`${text}\n`)) {
  const wanted = createHash('sha256').update(readFileSync(REQUIREMENTS)).digest('hex');
  const marker = path.join(HOME, 'requirements.sha256');
  const python = path.join(HOME, 'bin', 'python');
  if (existsSync(marker) && readFileSync(marker, 'utf8') === wanted) return python;
  log('python environment: installing torch and the test tools (once, about two minutes)');
  mkdirSync(path.dirname(HOME), { recursive: true });
  rmSync(HOME, { recursive: true, force: true });
  execFileSync(findPython(), ['-m', 'venv', HOME]);
  execFileSync(python, ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '-r', REQUIREMENTS], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  writeFileSync(`${marker}.new`, wanted);
  renameSync(`${marker}.new`, marker);
  return python;
}

/** Python 3.10 or newer on the PATH. */
function findPython() {
  const probe = 'import sys; sys.exit(sys.version_info < (3, 10))';
  const found = ['python3', 'python3.13', 'python3.12', 'python3.11', 'python3.10'].find(
    (name) => spawnSync(name, ['-c', probe]).status === 0,
  );
  if (!found) throw new Error('python3: must be Python 3.10 or newer with venv on the PATH; install it');
  return found;
}

if (process.argv[1] === import.meta.filename) process.stdout.write(`${pythonEnvironment()}\n`);
