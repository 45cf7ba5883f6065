// `npm test`: build, lint, types, the unit tests and the tests of Python that start no job. `npm run test:e2e`: the embedded AWS end to end, the
// simulation of the control plane, and the tests of Python that run drivers and ranks as processes. Closes with the counts of all tests.
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

const ROOT = path.resolve(import.meta.dirname, '..');
process.chdir(ROOT);
const [part = 'unit'] = process.argv.slice(2);
mkdirSync('.slipway/test', { recursive: true });
// What tests and their tools leave in the temporary folder goes with it.
const temporary = mkdtempSync(path.join(tmpdir(), 'slw-'));
process.env.TMPDIR = temporary;
process.env.SLIPWAY_TEST_TMPDIR = temporary;
process.on('exit', () => rmSync(temporary, { recursive: true, force: true }));
/**
 * Two at a time, beside the other tests: most of these wait for their processes. The tests of a file share ranks, so they stay
 * together; the files come by name, because xdist would put those of many tests first, which are not those that take long.
 */
const PYTEST = '-m pytest -q test/containers -n 2 --dist loadfile --no-loadscope-reorder'.split(' ');
/** Tests of Python by their marks (pyproject.toml). */
const MARKS = { unit: 'not slow and not jobs', e2e: 'jobs and not slow' };
// Python keeps its compiled modules, also where the environment tells it not to: otherwise each process compiles those of transformers, of
// the trainer and of the tests again.
delete process.env.PYTHONDONTWRITEBYTECODE;
// Tests that are played in part draw their cases with it, the failed ones that are tried again as well.
process.env.SLIPWAY_TEST_SEED ??= String(1 + Math.floor(Math.random() * 0x7fffffff));
/** What has not changed since the last run is not checked again. */
const TSC = '--noEmit --incremental --singleThreaded -p tsconfig.json'.split(' ');
const PYTHON = '.slipway/python/bin/python';
const INSTALL = 'scripts/python-env.mjs';
const RUFF = ['clients', 'containers', 'lib', 'runs', 'test', 'scripts'];
const counts = { passed: 0, failed: 0, skipped: 0 };
/** Seconds of each step, for the last line and for scripts/ci-budget.mjs. */
const times = {};

async function step(name, command, args) {
  const started = Date.now();
  process.stdout.write(`\n== ${name}\n`);
  const child = spawn(command, args, { stdio: 'inherit' });
  return finish(name, await succeeds(child), started);
}

/** Whether a program ends with exit code 0. */
const succeeds = (child) =>
  new Promise((done) => {
    child.on('error', (error) => {
      process.stderr.write(`${error.message}\n`);
      done(false);
    });
    child.on('close', (code) => done(code === 0));
  });

/** A step whose output is shown when it is over: several of them run at once. */
async function quietStep(name, command, args) {
  const started = Date.now();
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  const output = [];
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => output.push(data));
  const ok = await succeeds(child);
  process.stdout.write(`\n== ${name}\n${Buffer.concat(output.map((data) => Buffer.from(data)))}`);
  return finish(name, ok, started);
}

function finish(name, ok, started) {
  const seconds = ((Date.now() - started) / 1000).toFixed(1);
  times[name] = Number(seconds);
  process.stdout.write(`== ${name}: ${ok ? 'ok' : 'failed'} (${seconds} s)\n`);
  return ok;
}

/** What no test waits for. */
async function checks(python) {
  const types = ['node_modules/.bin/tsc', ...TSC, '--tsBuildInfoFile', '.slipway/test/types.tsbuildinfo'];
  const found = await Promise.all([
    quietStep('types', ...behind(types)),
    quietStep('lint', ...behind(['node_modules/.bin/biome', 'check', '.'])),
    python.then((ok) => ok && quietStep('mypy', ...behind([process.execPath, 'scripts/mypy.mjs']))),
    python.then((ok) => ok && quietStep('ruff', ...behind([PYTHON, '-m', 'ruff', 'check', ...RUFF]))),
  ]);
  return found.every((ok) => ok);
}

/**
 * A program that gets the time that others leave: tests that wait for their processes wait no longer for it. At the same priority hosts of
 * faked jobs came so late that tests of EFA failed, and passed alone.
 */
const behind = (words) => ['nice', ['-n', '10', ...words]];

/** @param run what carries out a step: at once, or behind the others */
async function vitest(project, run) {
  const report = `.slipway/test/${project}.json`;
  const words = ['node_modules/.bin/vitest', 'run', '--project', project, '--reporter=default', '--reporter=json'];
  const ok = await run(`vitest ${project}`, [...words, `--outputFile.json=${report}`]);
  if (existsSync(report)) {
    const result = JSON.parse(readFileSync(report, 'utf8'));
    add(result.numPassedTests, result.numFailedTests, result.numPendingTests);
  }
  return ok;
}

/** Its output is shown when it is over. */
async function pytest() {
  const first = await pytestOnce('pytest', []);
  // Ranks are real processes on a machine that others may keep busy; a test that fails twice has failed.
  const last =
    first.ok || !process.env.CI ? first : await pytestOnce('pytest, the failed ones again', ['--last-failed']);
  add(first.passed + (first === last ? 0 : last.passed), last.failed, first.skipped);
  return last.ok;
}

async function pytestOnce(name, more) {
  const report = '.slipway/test/pytest.xml';
  const ok = await quietStep(name, PYTHON, [...PYTEST, '-m', MARKS[part], `--junit-xml=${report}`, ...more]);
  const text = existsSync(report) ? readFileSync(report, 'utf8') : '';
  const attribute = (word) => Number(new RegExp(`${word}="(\\d+)"`).exec(text)?.[1] ?? 0);
  const failed = attribute('failures') + attribute('errors');
  const skipped = attribute('skipped');
  return { ok, failed, skipped, passed: attribute('tests') - failed - skipped };
}

function add(passed, failed, skipped) {
  counts.passed += passed;
  counts.failed += failed;
  counts.skipped += skipped;
}

/**
 * The environment of the tests, whose uv installs the other one. AWS's training toolkit needs a compiler; without one its test is skipped, and
 * this says why.
 */
async function toolkit(python) {
  if (!(await python)) return false;
  const there = await quietStep('toolkit', process.execPath, [INSTALL, 'requirements-toolkit.txt', 'toolkit']);
  if (!there) process.stdout.write('the training toolkit is not installed, its test is skipped\n');
  return true;
}

/** Checks and unit tests never wait, so that they fill the processors behind the tests of Python. */
async function unitTests(python, built) {
  const checked = checks(python);
  const [ready, installed] = await Promise.all([built, python]);
  const results = await Promise.all([
    checked,
    ready && installed && pytest(),
    ready && vitest('unit', (name, words) => step(name, ...behind(words))),
  ]);
  return results.every((ok) => ok);
}

/** Both wait for processes half of their time, so they run beside each other. */
async function endToEnd(python, built) {
  const ready = await Promise.all([built, toolkit(python)]);
  if (!ready.every((ok) => ok)) return false;
  const results = await Promise.all([vitest('e2e', (name, [command, ...args]) => step(name, command, args)), pytest()]);
  return results.every((ok) => ok);
}

const python = quietStep('python', process.execPath, [INSTALL]);
const built = quietStep('build', process.execPath, ['scripts/build.mjs']);
const ok = await (part === 'e2e' ? endToEnd : unitTests)(python, built);
const parts = Object.entries(times).map(([name, seconds]) => `${name} ${seconds}`);
process.stdout.write(`\nseconds: ${parts.join(', ')}\n`);
writeFileSync(`.slipway/test/seconds-${part}.json`, JSON.stringify(times));
process.stdout.write(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped\n`);
process.exitCode = ok && counts.failed === 0 ? 0 : 1;
