import { existsSync } from 'node:fs';
import path from 'node:path';
import { packageRoot } from '../../shared/files/own-package';

/**
 * Folder with the bundles of all Lambda functions, created by `npm run build`: the bundle of a function is in the subfolder with its name,
 * and shares chunks with the others.
 * @throws when the bundle of `name` does not exist
 */
export function handlersFolder(name: string): string {
  const folder = path.join(packageRoot(), 'dist', 'handlers');
  const file = path.join(folder, name, 'index.mjs');
  if (existsSync(file)) return folder;
  throw new Error(`slipway: the bundle of function ${name} must exist, got no ${file}; run npm run build`);
}
