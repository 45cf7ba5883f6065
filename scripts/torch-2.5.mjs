// `npm run test:torch-2.5`: the tests of the FSDP1 backend under the PyTorch of the SMP and SMDDP images, in an environment of its own.
import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { pythonEnvironment } from './python-env.mjs';

process.chdir(path.resolve(import.meta.dirname, '..'));
const python = pythonEnvironment('requirements-torch-2.5.txt', 'python-torch-2.5');
const { status } = spawnSync(python, ['-m', 'pytest', 'test/containers/test_fsdp1.py', ...process.argv.slice(2)], {
  stdio: 'inherit',
});
process.exitCode = status ?? 1;
