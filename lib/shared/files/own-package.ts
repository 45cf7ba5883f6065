import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';

/** What package.json says of this installation. */
export interface OwnPackage {
  name: string;
  version: string;
  peerDependencies: Record<string, string>;
  devDependencies: Record<string, string>;
}

/**
 * The folder of this installation: the nearest one above this file that has `containers/`. The compiled library, the sources and the bundle of
 * the command line, which defines `__dirname` too, are all below it.
 */
export function packageRoot(): string {
  for (let folder = __dirname; folder !== path.dirname(folder); folder = path.dirname(folder)) {
    if (existsSync(path.join(folder, 'containers')) && existsSync(path.join(folder, 'package.json'))) return folder;
  }
  throw new Error(
    `slipway: the folder containers/ must be in a parent folder of ${__dirname}; install the package again`,
  );
}

/** The package.json of this installation. */
export const ownPackage = (): OwnPackage =>
  JSON.parse(readFileSync(path.join(packageRoot(), 'package.json'), 'utf8')) as OwnPackage;
