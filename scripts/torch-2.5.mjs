// `npm run test:torch-2.5`: the trainer's FSDP1 and DeepSpeed backends and trackers, in an environment of its own: the PyTorch of the SMP
// and SMDDP images, and libraries that the trainer uses only where an image has them.
import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { pythonEnvironment } from './python-env.mjs';

process.chdir(path.resolve(import.meta.dirname, '..'));
const python = pythonEnvironment('requirements-torch-2.5.txt', 'python-torch-2.5');
const tests = ['test_fsdp1.py', 'test_deepspeed.py', 'test_trackers.py'].map((name) => `test/containers/${name}`);
const { status } = spawnSync(python, ['-m', 'pytest', ...tests, ...process.argv.slice(2)], { stdio: 'inherit' });
process.exitCode = status ?? 1;
