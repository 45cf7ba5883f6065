// `npm run test:gpu`: what one GPU can show of the product (bench/gpu). Takes the project's Python, else the first one on the path: a machine
// with a GPU may have PyTorch and nothing else.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import path from 'node:path';

process.chdir(path.resolve(import.meta.dirname, '..'));
const own = '.slipway/python/bin/python';
const { status, error } = spawnSync(existsSync(own) ? own : 'python3', ['bench/gpu', ...process.argv.slice(2)], {
  stdio: 'inherit',
});
if (error) console.error(`python3: must be on the path, got ${error.code}; install Python with PyTorch`);
process.exitCode = status ?? 1;
