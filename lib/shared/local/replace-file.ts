import { renameSync, rmSync, type WriteFileOptions, writeFileSync } from 'node:fs';

/**
 * Writes a file beside its place and renames it: a reader sees either the old or the new content, never a part, and a write that fails
 * leaves the old one.
 */
export function replaceFile(file: string, text: string, options?: WriteFileOptions): void {
  const beside = `${file}.${process.pid}.new`;
  try {
    writeFileSync(beside, text, options);
    renameSync(beside, file);
  } finally {
    rmSync(beside, { force: true });
  }
}
