#!/usr/bin/env node
// The `slipway` command of a package and of a clone. It is committed, so that npx finds it before the first build: npm links the
// commands of a package once, and one whose file is missing then stays missing.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const program = path.join(root, 'dist', 'cli', 'slipway.mjs');
if (!existsSync(program)) build();
await import(pathToFileURL(program).href);

/** Only a clone has no build yet; the command line alone takes seconds. */
function build() {
  const script = path.join(root, 'scripts', 'build.mjs');
  if (!existsSync(script)) stop(`${program} is missing from this package; install slipway again`);
  if (!existsSync(path.join(root, 'node_modules', 'esbuild')))
    stop(`the packages of this clone are not installed; run npm ci in ${root}`);
  console.error('slipway: no build yet; running node scripts/build.mjs cli');
  // stdout belongs to the command: with --json it is one document.
  const { status } = spawnSync(process.execPath, [script, 'cli'], { cwd: root, stdio: ['ignore', 2, 2] });
  if (status !== 0 || !existsSync(program)) stop(`the build failed; run npm run build in ${root} to see why`);
}

function stop(text) {
  console.error(`slipway: ${text}`);
  process.exit(2);
}
