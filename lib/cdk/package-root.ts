import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';

/** The folder of the installed package, both for the compiled code (dist/lib/cdk) and for the sources (lib/cdk). */
export function packageRoot(): string {
  for (let folder = __dirname; folder !== path.dirname(folder); folder = path.dirname(folder)) {
    if (existsSync(path.join(folder, 'containers')) && existsSync(path.join(folder, 'package.json'))) return folder;
  }
  throw new Error(
    `slipway: the folder containers/ must be in a parent folder of ${__dirname}; install the package again`,
  );
}

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

/** Version of this installation, from its package.json. */
export function packageVersion(): string {
  const file = JSON.parse(readFileSync(path.join(packageRoot(), 'package.json'), 'utf8')) as { version: string };
  return file.version;
}
