// Leaves in dist/lib only what the package's entry points reach: modules that only the command line and the functions use are in their bundles.
import { existsSync, readdirSync, readFileSync, rmdirSync, rmSync } from 'node:fs';
import path from 'node:path';

const LIBRARY = 'dist/lib';
const ENTRIES = ['dist/lib/cdk/index', 'dist/lib/sandbox/testing', 'dist/bin/app'];
const IMPORTS = {
  '.js': /(?:require|import)\(["'](\.[^"']+)["']\)/g,
  '.d.ts': /(?:from |import\()["'](\.[^"']+)["']/g,
};

/** Files with this ending that the entry points import, directly or not. */
function reached(ending) {
  const found = new Set();
  const waiting = ENTRIES.map((entry) => entry + ending).filter((file) => existsSync(file));
  for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
    if (found.has(file)) continue;
    found.add(file);
    for (const [, request] of readFileSync(file, 'utf8').matchAll(IMPORTS[ending])) {
      const base = path.posix.join(path.posix.dirname(file), request.replace(/\.js$/, ''));
      waiting.push(...[base + ending, `${base}/index${ending}`].filter((one) => existsSync(one)));
    }
  }
  return found;
}

/** Removes folders that hold nothing, the innermost first. */
function removeEmpty(folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true }))
    if (entry.isDirectory()) removeEmpty(path.join(folder, entry.name));
  if (readdirSync(folder).length === 0) rmdirSync(folder);
}

/** Removes the rest of dist/lib. */
export function pruneLibrary() {
  const kept = new Set(Object.keys(IMPORTS).flatMap((ending) => [...reached(ending)]));
  for (const name of readdirSync(LIBRARY, { recursive: true })) {
    const file = path.posix.join(LIBRARY, name.split(path.sep).join('/'));
    if (/\.(js|d\.ts)$/.test(file) && !kept.has(file)) rmSync(file);
  }
  removeEmpty(LIBRARY);
}
