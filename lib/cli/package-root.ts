import { existsSync } from 'node:fs';
import path from 'node:path';

/** The folder of this installation: the nearest folder above this file that contains `containers/` (the bundle defines `__dirname` too). */
export function packageRoot(): string {
  for (let folder = __dirname; folder !== path.dirname(folder); folder = path.dirname(folder)) {
    if (existsSync(path.join(folder, 'containers'))) return folder;
  }
  throw new Error(
    `slipway: the folder containers/ must be in a parent folder of ${__dirname}; install the package again`,
  );
}
