import { readFileSync } from 'node:fs';
import path from 'node:path';
import { packageRoot } from './package-root';

/** The version in package.json. */
export const version = (): string =>
  (JSON.parse(readFileSync(path.join(packageRoot(), 'package.json'), 'utf8')) as { version: string }).version;
