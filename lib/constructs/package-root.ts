import { existsSync } from 'node:fs';
import path from 'node:path';

/** The folder of the installed package: compiled (dist/lib/constructs) and as sources (lib/constructs). */
export function packageRoot(): string {
  for (let folder = __dirname; folder !== path.dirname(folder); folder = path.dirname(folder)) {
    if (existsSync(path.join(folder, 'containers')) && existsSync(path.join(folder, 'package.json'))) return folder;
  }
  throw new Error(`slipway: the folder containers/ must lie above ${__dirname}; install the package again`);
}

/** Folder with the bundle of one Lambda function, made by `npm run build`. */
export function handlerFolder(name: string): string {
  const folder = path.join(packageRoot(), 'dist', 'handlers', name);
  if (existsSync(path.join(folder, 'index.js'))) return folder;
  throw new Error(`slipway: the bundle of function ${name} must exist, got no ${folder}/index.js; run npm run build`);
}
