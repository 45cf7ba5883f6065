import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { sha256 } from '../../shared/archive/archive';
import { codeFiles } from '../../shared/archive/code-files';
import { packageRoot } from '../../shared/files/own-package';

/** One file of driver or trainer, with its path in the archive. */
export interface DriverFile {
  /** Key below `drivers/<hash>/`. */
  name: string;
  bytes: Buffer;
}

/** Driver and trainer of this package, and the hash under which they are stored in S3. */
export interface LocalDriver {
  files: DriverFile[];
  hash: string;
}

/** Folders of the package whose files are in the driver channel. */
const SOURCES = ['containers/driver', 'containers/trainer'];

/** The driver and trainer files of this installation, and the hash under which an environment publishes them. */
export function localDriver(): LocalDriver {
  const root = packageRoot();
  const files = SOURCES.flatMap((source) => {
    const folder = path.join(root, source);
    if (!existsSync(folder)) return [];
    return codeFiles(folder)
      .files.filter(({ name }) => !name.endsWith('.md'))
      .map(({ name }) => ({ name, bytes: readFileSync(path.join(folder, name)) }));
  });
  return { files, hash: hashOf(files) };
}

/** Twelve hexadecimal digits over names and contents. */
export function hashOf(files: readonly DriverFile[]): string {
  const lines = files.map(({ name, bytes }) => `${name} ${sha256(bytes)}`).sort();
  return sha256(lines.join('\n')).slice(0, 12);
}
