import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { UsageError } from './exit';
import type { Terminal } from './terminal';

/**
 * Runs a write to a path that the user named.
 * @param option as it was typed
 * @throws UsageError when the path cannot be written
 */
export function writing(option: string, what: 'file' | 'folder', place: string, work: () => void): void {
  try {
    work();
  } catch (error) {
    const reason = (error as NodeJS.ErrnoException).code;
    if (reason === undefined) throw error;
    throw new UsageError(
      `${option}: must be a ${what} that can be written, got ${place} (${reason}); specify another ${what}`,
    );
  }
}

/**
 * Creates a folder and its parents, one at a time: in Node 20, `recursive` does not return if one of them cannot be created, as below /proc
 * (the call returns ENOENT for a folder whose parent exists).
 */
export function makeFolder(folder: string): void {
  if (existsSync(folder)) return;
  makeFolder(path.dirname(path.resolve(folder)));
  try {
    mkdirSync(folder);
  } catch (error) {
    // Another process has created it in the meantime.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}

/**
 * Writes the page for `--html`.
 * @throws UsageError when the file cannot be written
 */
export const savePage = (file: string, page: string): void =>
  writing('--html', 'file', file, () => writeFileSync(file, page));

/** The same, and prints its path. */
export function writePage(file: string, page: string, terminal: Terminal): void {
  savePage(file, page);
  terminal.err(`wrote ${path.resolve(file)}`);
}
