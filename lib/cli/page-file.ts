import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { UsageError } from './exit';
import type { Terminal } from './terminal';

/**
 * Writes the page that `--html` asks for, and says where it is.
 * @throws UsageError where the file cannot be written
 */
export function writePage(file: string, page: string, terminal: Terminal): void {
  try {
    writeFileSync(file, page);
  } catch (error) {
    const reason = (error as NodeJS.ErrnoException).code;
    if (reason === undefined) throw error;
    throw new UsageError(`--html: must be a file that can be written, got ${file} (${reason}); name another one`);
  }
  terminal.err(`wrote ${path.resolve(file)}`);
}
