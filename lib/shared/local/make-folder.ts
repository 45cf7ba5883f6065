import { accessSync, constants, existsSync, mkdirSync, readdirSync } from 'node:fs';
import path from 'node:path';

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

/** Creates a folder and requires that files can be made in it. Throws the error of the file system. */
export function makeWritableFolder(folder: string): void {
  makeFolder(folder);
  readdirSync(folder);
  accessSync(folder, constants.W_OK);
}
