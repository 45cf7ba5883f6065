// `npm run types:python`: the types of the Python client, by mypy in strict mode (clients/python/pyproject.toml).
import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { pythonEnvironment } from './python-env.mjs';

const root = path.resolve(import.meta.dirname, '..');
const python = pythonEnvironment('requirements-types.txt', 'python-types');
const words = ['-m', 'mypy', '--config-file', 'pyproject.toml', '--cache-dir', path.join(root, '.slipway/test/mypy')];
const { status } = spawnSync(python, words, { cwd: path.join(root, 'clients/python'), stdio: 'inherit' });
process.exitCode = status ?? 1;
