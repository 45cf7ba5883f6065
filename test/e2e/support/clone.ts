import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import { ROOT } from './sandbox';

/** Copies what git would put into a fresh clone of the working tree: no packages, no build, nothing that git ignores. */
export function freshClone(folder: string): void {
  const listed = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
    cwd: ROOT,
    encoding: 'utf8',
    maxBuffer: 1 << 26,
  });
  for (const file of listed.split('\0').filter((name) => name && existsSync(path.join(ROOT, name)))) {
    mkdirSync(path.dirname(path.join(folder, file)), { recursive: true });
    cpSync(path.join(ROOT, file), path.join(folder, file));
  }
}

/** Gives a clone the packages of the working tree, as `npm ci` would. */
export function installPackages(folder: string): void {
  symlinkSync(path.join(ROOT, 'node_modules'), path.join(folder, 'node_modules'));
}
