// `npm run test:long`: sequences on the embedded AWS that take minutes each, and the cases of pytest that `npm test` draws a few of. With
// `--part SEED` (hexadecimal) what CI plays of them: those that every commit must pass (test/long/always), and one of the others, chosen by
// the seed, which is the commit there.
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import path from 'node:path';
import { pythonEnvironment } from './python-env.mjs';

const ROOT = path.resolve(import.meta.dirname, '..');
process.chdir(ROOT);

const LAYOUTS = ['test_layouts.py', 'test_mixture_layouts.py'].map((name) => `test/containers/${name}`);
const OTHERS = ['test/containers', ...LAYOUTS.map((file) => `--ignore=${file}`)];
/** Every case of the tests that are marked `drawn`, and the tests that are marked `slow`. */
const PYTEST = {
  'pytest layouts': [...LAYOUTS, '-m', 'drawn'],
  'pytest others': [...OTHERS, '-m', 'drawn'],
  'pytest slow': ['test/containers', '-m', 'slow'],
};

const ALWAYS = path.join('test', 'long', 'always') + path.sep;

/** The parts to play: all, or those of every commit and the one of the others that the seed chooses. */
function chosen(parts, seed) {
  if (seed === undefined) return parts;
  if (!/^[0-9a-f]{1,12}$/.test(seed)) {
    process.stderr.write(`--part: must be a hexadecimal seed, got ${seed}; use the first digits of a commit\n`);
    process.exit(2);
  }
  const always = parts.filter((part) => part.startsWith(ALWAYS));
  const others = parts.filter((part) => !part.startsWith(ALWAYS));
  return [...always, others[Number.parseInt(seed, 16) % others.length]];
}

/** Exit code of a program that prints as it goes. */
const run = (program, args) => spawnSync(program, args, { stdio: 'inherit' }).status ?? 1;

/** The files of vitest, after a build. */
function playFiles(files) {
  if (files.length === 0) return 0;
  if (files.some((file) => file.includes('ray.test'))) pythonEnvironment('requirements-ray.txt', 'ray');
  if (files.some((file) => file.includes('verl'))) pythonEnvironment('requirements-verl.txt', 'verl', ['--no-deps']);
  return (
    run(process.execPath, ['scripts/build.mjs']) ||
    run('node_modules/.bin/vitest', ['run', '--project', 'long', ...files])
  );
}

function playCases(name) {
  const options = ['-n', '2', '--dist', 'loadfile', '--all-cases'];
  return run(python, ['-m', 'pytest', '-q', ...PYTEST[name], ...options]);
}

const at = process.argv.indexOf('--part');
const seed = at < 0 ? undefined : (process.argv[at + 1] ?? '');
const files = readdirSync('test/long', { recursive: true, encoding: 'utf8' }).filter((file) =>
  file.endsWith('.test.ts'),
);
const parts = chosen([...files.map((file) => path.join('test/long', file)), ...Object.keys(PYTEST)].sort(), seed);
process.stdout.write(`long sequences${seed ? ` (seed ${seed})` : ''}: ${parts.join(', ')}\n`);
const python = pythonEnvironment();
const results = [playFiles(parts.filter((part) => !(part in PYTEST)))];
for (const part of parts) if (part in PYTEST) results.push(playCases(part));
process.exitCode = results.find((code) => code !== 0) ?? 0;
