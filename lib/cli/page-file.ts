import { writeFileSync } from 'node:fs';
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
