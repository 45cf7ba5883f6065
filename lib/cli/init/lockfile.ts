import { spawnSync } from 'node:child_process';

const WORDS = ['install', '--package-lock-only', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];

/** Writes package-lock.json, with which `npm ci` installs the same on every machine. @returns whether npm could */
export function writeLockfile(project: string): boolean {
  const { status } = spawnSync('npm', WORDS, {
    cwd: project,
    stdio: ['ignore', 2, 2],
    shell: process.platform === 'win32',
  });
  return status === 0;
}
