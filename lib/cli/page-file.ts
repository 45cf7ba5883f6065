import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { UsageError } from './exit';
import type { Terminal } from './terminal';

/**
 * Does what writes to a place that a user has named.
 * @param option as it was written
 * @throws UsageError where it cannot be written
 */
export function writing(option: string, what: 'file' | 'folder', place: string, work: () => void): void {
  try {
    work();
  } catch (error) {
    const reason = (error as NodeJS.ErrnoException).code;
    if (reason === undefined) throw error;
    throw new UsageError(
      `${option}: must be a ${what} that can be written, got ${place} (${reason}); name another one`,
    );
  }
}

/**
 * Makes a folder and those that it lies in, one at a time: `recursive` of Node 20 does not return where one of them cannot be made, as below
 * /proc (the call answers ENOENT for a folder whose parent is there).
 */
export function makeFolder(folder: string): void {
  if (existsSync(folder)) return;
  makeFolder(path.dirname(path.resolve(folder)));
  try {
    mkdirSync(folder);
  } catch (error) {
    // Another call has made it meanwhile.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}

/**
 * Writes the page that `--html` asks for.
 * @throws UsageError where the file cannot be written
 */
export const savePage = (file: string, page: string): void =>
  writing('--html', 'file', file, () => writeFileSync(file, page));

/** The same, and says where it is. */
export function writePage(file: string, page: string, terminal: Terminal): void {
  savePage(file, page);
  terminal.err(`wrote ${path.resolve(file)}`);
}
