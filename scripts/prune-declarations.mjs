// Leaves in dist/lib only the declarations that the package's entry points reach.
import { existsSync, readdirSync, readFileSync, rmdirSync, rmSync } from 'node:fs';
import path from 'node:path';

const LIBRARY = 'dist/lib';
const ENTRIES = ['dist/lib/cdk/index.d.ts', 'dist/lib/sandbox/testing.d.ts'];
const IMPORT = /(?:from |import\()["'](\.[^"']+)["']/g;

/** Declarations that the entry points import, directly or not. */
function reached() {
  const found = new Set();
  const waiting = [...ENTRIES];
  for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
    if (found.has(file)) continue;
    found.add(file);
    for (const [, request] of readFileSync(file, 'utf8').matchAll(IMPORT)) {
      const base = path.posix.join(path.posix.dirname(file), request.replace(/\.js$/, ''));
      waiting.push(...[`${base}.d.ts`, `${base}/index.d.ts`].filter((one) => existsSync(one)));
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
export function pruneDeclarations() {
  const kept = reached();
  for (const name of readdirSync(LIBRARY, { recursive: true })) {
    const file = path.posix.join(LIBRARY, name.split(path.sep).join('/'));
    if (file.endsWith('.d.ts') && !kept.has(file)) rmSync(file);
  }
  removeEmpty(LIBRARY);
}
