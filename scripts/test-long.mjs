// `npm run test:long`: sequences on the embedded AWS that take minutes each, and the cases of pytest that `npm test` draws a few of. With
// `--always` those that every commit must pass (test/long/always), which CI plays; with `--weekday 1` to `7` a seventh of the others, so that a
// week plays all of them (docs/contributing/testing.md); with names, such as `test/long/ray.test.ts` or `'pytest slow'`, those.
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import path from 'node:path';
import { besideTests, pythonEnvironment } from './python-env.mjs';

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

/** The parts to play: all, those named, those of every commit, or those of one day of the week. */
function chosen(parts) {
  const names = process.argv
    .slice(2)
    .filter((word, i, words) => !word.startsWith('--') && words[i - 1] !== '--weekday');
  const unknown = names.filter((name) => !parts.includes(name));
  if (unknown.length > 0) {
    process.stderr.write(`test:long: must name long sequences, got ${unknown.join(', ')}; use ${parts.join(', ')}\n`);
    process.exit(2);
  }
  if (names.length > 0) return names;
  const others = parts.filter((part) => !part.startsWith(ALWAYS));
  if (process.argv.includes('--always')) return parts.filter((part) => part.startsWith(ALWAYS));
  const at = process.argv.indexOf('--weekday');
  if (at < 0) return parts;
  const day = Number(process.argv[at + 1]);
  if (!(Number.isInteger(day) && day >= 1 && day <= 7)) {
    process.stderr.write(`--weekday: must be 1 (Monday) to 7, got ${process.argv[at + 1]}; use $(date +%u)\n`);
    process.exit(2);
  }
  return others.filter((_, place) => place % 7 === day - 1);
}

/** Exit code of a program that prints as it goes. */
const run = (program, args) => spawnSync(program, args, { stdio: 'inherit' }).status ?? 1;

/** The files of vitest, after a build. */
function playFiles(files) {
  if (files.length === 0) return 0;
  if (files.some((file) => file.includes('ray.test'))) pythonEnvironment('requirements-ray.txt', 'ray');
  if (files.some((file) => file.includes('verl'))) pythonEnvironment('requirements-verl.txt', 'verl', ['--no-deps']);
  if (files.some((file) => file.includes('trainers')))
    for (const folder of ['trainers', 'llama-factory', 'axolotl'])
      besideTests(`requirements-${folder}.txt`, folder, ['--no-deps']);
  return (
    run(process.execPath, ['scripts/build.mjs']) ||
    run('node_modules/.bin/vitest', ['run', '--project', 'long', ...files])
  );
}

function playCases(name) {
  const options = ['-n', '2', '--dist', 'loadfile', '--all-cases'];
  return run(python, ['-m', 'pytest', '-q', ...PYTEST[name], ...options]);
}

const files = readdirSync('test/long', { recursive: true, encoding: 'utf8' }).filter((file) =>
  file.endsWith('.test.ts'),
);
const parts = chosen([...files.map((file) => path.join('test/long', file)), ...Object.keys(PYTEST)].sort());
process.stdout.write(`long sequences: ${parts.join(', ')}\n`);
const python = pythonEnvironment();
const results = [playFiles(parts.filter((part) => !(part in PYTEST)))];
for (const part of parts) if (part in PYTEST) results.push(playCases(part));
process.exitCode = results.find((code) => code !== 0) ?? 0;
