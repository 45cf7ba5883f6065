import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { makeFolder } from '../../shared/files/make-folder';
import { ownPackage, packageRoot } from '../../shared/files/own-package';
import { UsageError } from '../exit';

/** Folder of a project that holds the packed product: nobody needs a registry or the clone to install it. */
const VENDOR = 'vendor';
/** The script of a clone that packs the product and the Python client. */
const PACK = 'scripts/pack.mjs';
const WHEEL = /^slipway_client-.*\.whl$/;

/** What a new project depends on. */
export interface Vendored {
  /** Value for `dependencies` of package.json: a path below the project, or a version of a registry. */
  specifier: string;
  /** Paths from the project's folder. */
  files: string[];
}

/**
 * Puts the packed product and the wheel of the Python client into `vendor/` of a project: packed from the clone that this command runs in,
 * or copied from where this package was installed from.
 * @param given the option `--package`: a packed tarball, or a version of a registry
 */
export function vendored(project: string, given: string | undefined): Vendored {
  if (given !== undefined) return existsSync(given) ? copied(project, tarball(given)) : { specifier: given, files: [] };
  const script = path.join(packageRoot(), PACK);
  if (existsSync(script)) return packed(project, script);
  const { name, version } = ownPackage();
  const source = installedFrom(name);
  return source ? copied(project, source) : { specifier: version, files: [] };
}

function tarball(file: string): string {
  if (statSync(file).isFile()) return file;
  throw new UsageError(
    `--package: must be a packed tarball or a version, got the folder ${file}; run npm run pack in it, and name the .tgz file`,
  );
}

function packed(project: string, script: string): Vendored {
  const folder = path.resolve(project, VENDOR);
  const { status, stdout } = spawnSync(process.execPath, [script, folder], {
    stdio: ['ignore', 'pipe', 2],
    encoding: 'utf8',
  });
  if (status !== 0)
    throw new UsageError(
      'init: must be able to pack this clone, which failed (see above); it needs npm, and Python 3.10 or newer with pip as python3',
    );
  const made = JSON.parse(stdout) as Record<'package' | 'wheel', string>;
  return belowVendor(path.basename(made.package), path.basename(made.wheel));
}

/** Copies a tarball, with the wheel that lies beside it. */
function copied(project: string, file: string): Vendored {
  const folder = path.join(project, VENDOR);
  const beside = path.dirname(file);
  const names = [path.basename(file), ...readdirSync(beside).filter((name) => WHEEL.test(name))];
  makeFolder(folder);
  for (const name of names) copyFileSync(path.join(beside, name), path.join(folder, name));
  return belowVendor(...names);
}

const belowVendor = (...names: string[]): Vendored => ({
  specifier: `file:${VENDOR}/${names[0]}`,
  files: names.map((name) => `${VENDOR}/${name}`),
});

/**
 * The tarball that this package was installed from, if npm recorded one that is still there.
 * https://docs.npmjs.com/cli/v10/configuring-npm/package-lock-json
 */
function installedFrom(name: string): string | undefined {
  const folder = path.join('node_modules', name);
  const root = packageRoot();
  const home = root.endsWith(path.sep + folder) ? root.slice(0, -folder.length) : undefined;
  const lock = home && path.join(home, 'node_modules', '.package-lock.json');
  if (!home || !lock || !existsSync(lock)) return undefined;
  const { packages = {} } = JSON.parse(readFileSync(lock, 'utf8')) as {
    packages?: Record<string, { resolved?: string }>;
  };
  const resolved = packages[`node_modules/${name}`]?.resolved ?? '';
  // npm writes the path relative to the folder that contains node_modules.
  const file = path.resolve(home, resolved.replace(/^file:/, ''));
  return resolved.startsWith('file:') && existsSync(file) ? file : undefined;
}
