import { cpSync, mkdirSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import { ROOT, repositoryFiles } from '../../support/repository-files';

/** Copies what git would put into a fresh clone of the working tree: no packages, no build, nothing that git ignores. */
export function freshClone(folder: string): void {
  for (const file of repositoryFiles()) {
    mkdirSync(path.dirname(path.join(folder, file)), { recursive: true });
    cpSync(path.join(ROOT, file), path.join(folder, file));
  }
}

/** Gives a clone the packages of the working tree, as `npm ci` would. */
export function installPackages(folder: string): void {
  symlinkSync(path.join(ROOT, 'node_modules'), path.join(folder, 'node_modules'));
}
