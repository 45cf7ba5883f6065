// The Pythons of tests and demo in .slipway: made once, made again when their requirements change.
// `pythonEnvironment()` answers the interpreter; run as a script it prints it.
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';

const ROOT = path.resolve(import.meta.dirname, '..');

export function pythonEnvironment(requirements = 'requirements-dev.txt', folder = 'python') {
  const file = path.join(ROOT, requirements);
  const home = path.join(ROOT, '.slipway', folder);
  const wanted = createHash('sha256').update(readFileSync(file)).digest('hex');
  const marker = path.join(home, 'requirements.sha256');
  const python = path.join(home, 'bin', 'python');
  if (existsSync(marker) && readFileSync(marker, 'utf8') === wanted) return python;
  process.stderr.write(`python environment: installing ${requirements} (once, about two minutes)\n`);
  mkdirSync(path.dirname(home), { recursive: true });
  rmSync(home, { recursive: true, force: true });
  execFileSync(findPython(), ['-m', 'venv', home]);
  execFileSync(python, ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '-r', file], {
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
