import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';

/** Stryker 9.6 runs on Node 20. It is not among the development dependencies, because only `npm run mutate` needs its 160 packages. */
const PACKAGES = { '@stryker-mutator/core': '9.6.1', '@stryker-mutator/vitest-runner': '9.6.1' };

/** The folder of Stryker's packages, which are installed once: vitest is found in the folder above it. */
export function strykerFolder(root: string): string {
  const folder = path.join(root, '.slipway', 'stryker');
  const wanted = `${JSON.stringify({ private: true, dependencies: PACKAGES }, null, 2)}\n`;
  const file = path.join(folder, 'package.json');
  const isThere = existsSync(path.join(folder, 'node_modules', '@stryker-mutator', 'vitest-runner'));
  if (isThere && readFileSync(file, 'utf8') === wanted) return folder;
  process.stderr.write('installing Stryker (once, about half a minute)\n');
  mkdirSync(folder, { recursive: true });
  writeFileSync(file, wanted);
  const options = ['--legacy-peer-deps', '--ignore-scripts', '--no-audit', '--no-fund', '--silent'];
  execFileSync('npm', ['install', ...options], { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] });
  return folder;
}
