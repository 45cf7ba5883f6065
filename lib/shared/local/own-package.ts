import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

/** What package.json says of this installation. */
interface OwnPackage {
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

export const ownPackage = (): OwnPackage =>
  JSON.parse(readFileSync(path.join(packageRoot(), 'package.json'), 'utf8')) as OwnPackage;

/** Folders of the package whose files are in the driver channel, in one common prefix. */
const SOURCES = ['containers/driver', 'containers/trainer'];
/** What an interpreter, a checkout and an installation leave, and what no job reads. */
const LEFT_OUT =
  /(^|\/)(__pycache__|\.git|\.pytest_cache|\.ruff_cache|\.venv|node_modules|build|[^/]*\.egg-info)(\/|$)|\.(pyc|md|toml)$/;

/**
 * The driver and trainer files of this installation, by their keys below `drivers/<hash>/`, and the hash under which an environment publishes
 * them: twelve hexadecimal digits over the names and contents.
 */
export function driverFiles() {
  const root = packageRoot();
  const files = SOURCES.flatMap((source) => filesBelow(path.join(root, source)));
  const lines = files.map(({ name, text }) => `${name} ${sha256(text)}`).sort();
  return { hash: sha256(lines.join('\n')).slice(0, 12), files };
}

function filesBelow(folder: string): { name: string; text: string }[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(folder, path.join(entry.parentPath, entry.name)).split(path.sep).join('/'))
    .filter((name) => !LEFT_OUT.test(name))
    .sort()
    .map((name) => ({ name, text: readFileSync(path.join(folder, name), 'utf8') }));
}

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');
