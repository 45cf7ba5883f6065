// `npm run test:long`: sequences on the embedded AWS that take minutes each. With `--part SEED` (hexadecimal) one of them, chosen by the
// seed, as CI does with the commit.
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import path from 'node:path';
import { pythonEnvironment } from './python-env.mjs';

const ROOT = path.resolve(import.meta.dirname, '..');
process.chdir(ROOT);

/** The files to play: all, or the one that the seed chooses. */
function chosen(files, seed) {
  if (seed === undefined) return files;
  if (!/^[0-9a-f]{1,12}$/.test(seed)) {
    process.stderr.write(`--part: must be a hexadecimal seed, got ${seed}; use the first digits of a commit\n`);
    process.exit(2);
  }
  return [files[Number.parseInt(seed, 16) % files.length]];
}

const at = process.argv.indexOf('--part');
const seed = at < 0 ? undefined : (process.argv[at + 1] ?? '');
const all = readdirSync('test/long', { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.test.ts'));
const files = chosen(all.sort(), seed).map((file) => path.join('test/long', file));
process.stdout.write(`long sequences${seed ? ` (seed ${seed})` : ''}: ${files.join(', ')}\n`);
pythonEnvironment();
if (files.some((file) => file.includes('second-emulator'))) pythonEnvironment('requirements-moto.txt', 'moto');
const build = spawnSync(process.execPath, ['scripts/build.mjs'], { stdio: 'inherit' });
const vitest = ['run', '--project', 'long', ...files];
process.exitCode = build.status || spawnSync('node_modules/.bin/vitest', vitest, { stdio: 'inherit' }).status || 0;
