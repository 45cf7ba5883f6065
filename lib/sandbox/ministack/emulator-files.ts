import { existsSync } from 'node:fs';
import path from 'node:path';

const LAUNCHER = path.join('lib', 'sandbox', 'emulator', 'launch.py');

/** The Python program that starts MiniStack, in the sources and in the installed package (the bundle defines `__dirname` too). */
export function launcherFile(): string {
  for (let folder = __dirname; folder !== path.dirname(folder); folder = path.dirname(folder)) {
    if (existsSync(path.join(folder, LAUNCHER))) return path.join(folder, LAUNCHER);
  }
  throw new Error(`sandbox: ${LAUNCHER} must be in a parent folder of ${__dirname}; install the package again`);
}
