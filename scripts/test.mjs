// `npm test`: build, lint, types, unit tests, Python tests, sandbox end to end. Stops at the first step that fails and closes
// with the counts of all tests.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { pythonEnvironment } from './python-env.mjs';

const ROOT = path.resolve(import.meta.dirname, '..');
process.chdir(ROOT);
mkdirSync('.slipway/test', { recursive: true });
const counts = { passed: 0, failed: 0, skipped: 0 };

function step(name, command, args, env = {}) {
  const started = Date.now();
  process.stdout.write(`\n== ${name}\n`);
  const { status } = spawnSync(command, args, { stdio: 'inherit', env: { ...process.env, ...env } });
  process.stdout.write(
    `== ${name}: ${status === 0 ? 'ok' : 'failed'} (${((Date.now() - started) / 1000).toFixed(1)} s)\n`,
  );
  return status === 0;
}

function vitest(project) {
  const report = `.slipway/test/${project}.json`;
  const ok = step(`vitest ${project}`, 'node_modules/.bin/vitest', [
    'run',
    '--project',
    project,
    '--reporter=default',
    '--reporter=json',
    `--outputFile.json=${report}`,
  ]);
  if (existsSync(report)) {
    const result = JSON.parse(readFileSync(report, 'utf8'));
    add(result.numPassedTests, result.numFailedTests, result.numPendingTests);
  }
  return ok;
}

function pytest(python) {
  const report = '.slipway/test/pytest.xml';
  const ok = step('pytest', python, ['-m', 'pytest', '-q', 'test/containers', `--junit-xml=${report}`]);
  const attribute = (name) => Number(new RegExp(`${name}="(\\d+)"`).exec(readFileSync(report, 'utf8'))?.[1] ?? 0);
  if (existsSync(report)) {
    const failed = attribute('failures') + attribute('errors');
    add(attribute('tests') - failed - attribute('skipped'), failed, attribute('skipped'));
  }
  return ok;
}

function add(passed, failed, skipped) {
  counts.passed += passed;
  counts.failed += failed;
  counts.skipped += skipped;
}

const python = pythonEnvironment();
const ok =
  step('build', process.execPath, ['scripts/build.mjs']) &&
  step('lint', 'node_modules/.bin/biome', ['check', '.']) &&
  step('types', 'node_modules/.bin/tsc', ['--noEmit', '-p', 'tsconfig.json']) &&
  step('ruff', python, ['-m', 'ruff', 'check', 'containers', 'test', 'scripts']) &&
  vitest('unit') &&
  pytest(python) &&
  vitest('e2e');
process.stdout.write(`\n${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped\n`);
process.exitCode = ok && counts.failed === 0 ? 0 : 1;
