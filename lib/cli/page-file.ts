import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { replaceFile } from '../shared/local/replace-file';
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
 * @throws UsageError when the file cannot be written, or has something else than a page
 */
export function savePage(file: string, page: string): void {
  writing('--html', 'file', file, () => {
    const isFile = !existsSync(file) || statSync(file).isFile();
    // A pipe or a terminal, such as /dev/stdout, cannot be replaced.
    if (!isFile) return writeFileSync(file, page);
    if (existsSync(file) && !isPage(readFileSync(file, 'utf8')))
      throw new UsageError(`--html: must be a new file or an earlier page, got ${file}; name another file`);
    replaceFile(file, page);
  });
}

const isPage = (text: string): boolean => text.trim() === '' || /^\s*<!doctype html/i.test(text);

/** The same, and prints its path. */
export function writePage(file: string, page: string, terminal: Terminal): void {
  savePage(file, page);
  terminal.err(`wrote ${path.resolve(file)}`);
}
