// The Pythons of tests and demo in .slipway: made once, made again when their requirements change.
// `pythonEnvironment()` answers the interpreter; run as a script, with the same two arguments or none, it prints it.
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';

const ROOT = path.resolve(import.meta.dirname, '..');

export function pythonEnvironment(requirements = 'requirements-dev.txt', folder = 'python', options = []) {
  const file = path.join(ROOT, requirements);
  const home = path.join(ROOT, '.slipway', folder);
  const wanted = createHash('sha256').update(readFileSync(file)).digest('hex');
  const marker = path.join(home, 'requirements.sha256');
  const python = path.join(home, 'bin', 'python');
  if (existsSync(marker) && readFileSync(marker, 'utf8') === wanted) return python;
  process.stderr.write(`python environment: installing ${requirements} (once, about a minute)\n`);
  mkdirSync(path.dirname(home), { recursive: true });
  rmSync(home, { recursive: true, force: true });
  const wants = [...options, '-r', file];
  if (!WITHOUT_PIP.includes(folder) || !installByUvOfTests(home, wants)) {
    execFileSync(findPython(), ['-m', 'venv', '--clear', home]);
    install(python, wants);
  }
  writeFileSync(`${marker}.new`, wanted);
  renameSync(`${marker}.new`, marker);
  return python;
}

/** An environment whose packages come in front of those of the tests, which it shares. PYTHONPATH would put the latter first. */
export function besideTests(requirements, folder, options = []) {
  const python = pythonEnvironment(requirements, folder, options);
  const packagesOf = (interpreter) => {
    const lib = path.resolve(path.dirname(interpreter), '..', 'lib');
    return readdirSync(lib)
      .map((version) => path.join(lib, version, 'site-packages'))
      .filter((place) => existsSync(place));
  };
  const shared = `${packagesOf(pythonEnvironment()).join('\n')}\n`;
  for (const place of packagesOf(python)) writeFileSync(path.join(place, 'slipway-tests.pth'), shared);
  return python;
}

/** Environments in which nothing is installed later. They need no pip, which takes longer than what they hold. */
const WITHOUT_PIP = ['toolkit', 'python-types'];

/** By the uv that the environment of the tests has. @returns whether it is there and could */
function installByUvOfTests(home, wanted) {
  const tests = path.join(ROOT, '.slipway', 'python', 'bin');
  if (!existsSync(path.join(tests, 'uv'))) return false;
  execFileSync(findPython(), ['-m', 'venv', '--without-pip', home]);
  return run(path.join(tests, 'python'), uvInto(path.join(home, 'bin', 'python'), wanted));
}

const uvInto = (python, wanted) => ['-m', 'uv', 'pip', 'install', '--quiet', '--python', python, ...wanted];

/** Whether programs of an environment end well, one after the other, with what its pip knows of indexes as variables of uv. */
function run(python, ...programs) {
  const { stdout } = spawnSync(python, ['-m', 'pip', 'config', 'list'], { encoding: 'utf8' });
  const env = { ...indexesForUv(stdout ?? ''), ...process.env };
  return programs.every(
    (words) => spawnSync(python, words, { stdio: ['ignore', 'ignore', 'inherit'], env }).status === 0,
  );
}

const PIP = '-m pip install --quiet --disable-pip-version-check'.split(' ');
const UV = 'uv==0.13.9';
/** What pip knows of indexes, and where uv expects it; uv does not read pip's settings. */
const INDEXES = { 'index-url': 'UV_DEFAULT_INDEX', 'extra-index-url': 'UV_INDEX', 'find-links': 'UV_FIND_LINKS' };

/** By uv, which takes a third of pip's time for PyTorch and its libraries, and by pip where uv cannot. */
function install(python, wanted) {
  if (run(python, [...PIP, UV], uvInto(python, wanted))) return;
  process.stderr.write('python environment: uv could not install it; pip tries\n');
  execFileSync(python, [...PIP, ...wanted], { stdio: ['ignore', 'ignore', 'inherit'] });
}

/** What `pip install` reads, the weakest first; other sections are those of other commands. */
const SECTIONS = ['global', 'install', ':env:'];

/** The indexes of pip's files and variables, from what `pip config list` prints, as variables of uv. */
export function indexesForUv(listing) {
  const found = [...listing.matchAll(/^([^\n.]+)\.([a-z-]+)='(.*)'$/gm)];
  const read = found.filter(([, section, name]) => SECTIONS.includes(section) && INDEXES[name]);
  read.sort(([, a], [, b]) => SECTIONS.indexOf(a) - SECTIONS.indexOf(b));
  return Object.fromEntries(read.map(([, , name, value]) => [INDEXES[name], separated(name, value)]));
}

/** pip separates by white space, which its listing prints as it is or as `\n`; uv separates folders of wheels by commas. */
const separated = (name, value) =>
  value
    .trim()
    .split(/(?:\s|\\n)+/)
    .join(name === 'find-links' ? ',' : ' ');

/** Python 3.10 or newer on the PATH. */
function findPython() {
  const probe = 'import sys; sys.exit(sys.version_info < (3, 10))';
  const found = ['python3', 'python3.13', 'python3.12', 'python3.11', 'python3.10'].find(
    (name) => spawnSync(name, ['-c', probe]).status === 0,
  );
  if (!found) throw new Error('python3: must be Python 3.10 or newer with venv on the PATH; install it');
  return found;
}

if (process.argv[1] === import.meta.filename) process.stdout.write(`${pythonEnvironment(...process.argv.slice(2))}\n`);
