// `npm run test:ray`: the Ray launcher under the Ray of PyPI, in an environment of its own. PyTorch, which the example of Ray Train needs,
// comes from the tests' own environment. With `--drawn` one of two: a job that ends well, or one that loses a host, by SLIPWAY_TEST_SEED.
import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { besideTests } from './python-env.mjs';

process.chdir(path.resolve(import.meta.dirname, '..'));
const python = besideTests('requirements-ray.txt', 'ray');
const given = process.argv.slice(2);
const drawn = Number(process.env.SLIPWAY_TEST_SEED ?? 1) % 2 === 0 ? 'tasks_run' : 'lost_host';
const options = given.flatMap((word) => (word === '--drawn' ? ['-k', drawn] : [word]));
const words = ['-m', 'pytest', 'test/containers/test_ray.py', ...options];
const { status } = spawnSync(python, words, { stdio: 'inherit' });
process.exitCode = status ?? 1;
