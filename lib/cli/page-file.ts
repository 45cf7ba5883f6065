import { existsSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
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
 * @throws UsageError when the file cannot be written, or has something else than a page
 */
export function savePage(file: string, page: string): void {
  writing('--html', 'file', file, () => {
    if (existsSync(file) && statSync(file).isFile() && !isPage(readFileSync(file, 'utf8')))
      throw new UsageError(`--html: must be a new file or an earlier page, got ${file}; name another file`);
    // A page that cannot be written whole leaves the earlier one.
    const isFile = !existsSync(file) || statSync(file).isFile();
    const beside = isFile ? `${file}.${process.pid}.new` : file;
    try {
      writeFileSync(beside, page);
      if (isFile) renameSync(beside, file);
    } finally {
      if (isFile) rmSync(beside, { force: true });
    }
  });
}

const isPage = (text: string): boolean => text.trim() === '' || /^\s*<!doctype html/i.test(text);

/** The same, and prints its path. */
export function writePage(file: string, page: string, terminal: Terminal): void {
  savePage(file, page);
  terminal.err(`wrote ${path.resolve(file)}`);
}
