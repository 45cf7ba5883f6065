import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { packageRoot } from '../package-root';

/**
 * What a new project's package.json names as slipway. npm records where an installed package came from: one that was installed from a
 * file, such as a packed tarball, is named by the same file. https://docs.npmjs.com/cli/v10/configuring-npm/package-lock-json
 * @param directory folder of the new project
 * @param version taken when the package came from a registry, or is a clone
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
  // npm writes the path from the folder that holds node_modules.
  const file = path.resolve(packages, '..', resolved.slice('file:'.length));
  return fileSpecifier(directory, file);
}

/** A path as npm takes it in the package.json of a folder. */
export function fileSpecifier(directory: string, file: string): string {
  const relative = path.relative(path.resolve(directory), path.resolve(file)).split(path.sep).join('/');
  return `file:${relative}`;
}
