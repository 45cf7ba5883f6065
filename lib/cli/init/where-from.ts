import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { packageRoot } from '../package-root';

/**
 * The slipway dependency in a new project's package.json. npm records where an installed package came from: if it was installed from a
 * file, such as a packed tarball, the new project uses the same file. https://docs.npmjs.com/cli/v10/configuring-npm/package-lock-json
 * @param directory folder of the new project
 * @param version used when the package came from a registry, or is a clone
 */
export function slipwaySpecifier(directory: string, version: string): string {
  const packages = path.dirname(packageRoot());
  const lock = path.join(packages, '.package-lock.json');
  if (path.basename(packages) !== 'node_modules' || !existsSync(lock)) return version;
  const { packages: installed = {} } = JSON.parse(readFileSync(lock, 'utf8')) as {
    packages?: Record<string, { resolved?: string }>;
  };
  const resolved = installed['node_modules/slipway']?.resolved ?? '';
  if (!resolved.startsWith('file:')) return version;
  // npm writes the path relative to the folder that contains node_modules.
  const file = path.resolve(packages, '..', resolved.slice('file:'.length));
  return fileSpecifier(directory, file);
}

/** A path in the form that npm expects in the package.json of a folder. */
export function fileSpecifier(directory: string, file: string): string {
  const relative = path.relative(path.resolve(directory), path.resolve(file)).split(path.sep).join('/');
  return `file:${relative}`;
}
