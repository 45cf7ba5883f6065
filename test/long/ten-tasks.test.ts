// Ten small tasks of CONTRIBUTING.md, each as a patch: with what is generated from it, it touches the files that the table names and no
// other, and the tests of its modules pass.
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { TASKS } from '../ten-tasks/tasks';

const ROOT = path.join(__dirname, '..', '..');
const PATCHES = path.join(ROOT, 'test', 'ten-tasks');

vi.setConfig({ testTimeout: 600_000, hookTimeout: 120_000 });

let copy = '';

beforeAll(() => {
  copy = mkdtempSync(path.join(os.tmpdir(), 'slipway-tasks-'));
  const files = execFileSync('git', ['ls-files', '-z'], { cwd: ROOT, encoding: 'utf8' }).split('\0').filter(Boolean);
  for (const file of files) {
    mkdirSync(path.dirname(path.join(copy, file)), { recursive: true });
    cpSync(path.join(ROOT, file), path.join(copy, file));
  }
  for (const made of ['node_modules', '.slipway']) symlinkSync(path.join(ROOT, made), path.join(copy, made));
  cpSync(path.join(ROOT, 'dist'), path.join(copy, 'dist'), { recursive: true });
  run('git', ['init', '--quiet']);
  run('git', ['add', '--all']);
  run('git', ['-c', 'user.name=test', '-c', 'user.email=test', 'commit', '--quiet', '--message', 'before']);
});

afterAll(() => rmSync(copy, { recursive: true, force: true }));

/** The files that the table of CONTRIBUTING.md names for a task. */
function filesOf(task: string): string[] {
  const row = readFileSync(path.join(ROOT, 'CONTRIBUTING.md'), 'utf8').match(
    new RegExp(`^\\| \\[.*\\]\\(test/ten-tasks/${task}\\.patch\\) \\| (.*) \\|$`, 'm'),
  );
  return [...(row?.[1] ?? '').matchAll(/`([^`]+)`/g)].map(([, file = '']) => file).sort();
}

const run = (program: string, args: readonly string[]) =>
  execFileSync(program, args, { cwd: copy, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });

test('every task has its patch, and every patch its task', () => {
  const patches = readdirSync(PATCHES).filter((file) => file.endsWith('.patch'));
  expect(patches.map((file) => file.replace('.patch', '')).sort()).toEqual(Object.keys(TASKS).sort());
});

test.each(Object.entries(TASKS))('%s', (task, { scripts, tests }) => {
  run('git', ['apply', '--index', path.join(PATCHES, `${task}.patch`)]);
  try {
    run('node_modules/.bin/tsc', ['--noEmit', '-p', 'tsconfig.json']);
    for (const script of scripts) run('npm', ['run', '--silent', script]);
    run('git', ['add', '--all']);
    const touched = run('git', ['diff', '--cached', '--name-only']).trim().split('\n');
    expect(touched.sort()).toEqual(filesOf(task));
    run('node_modules/.bin/vitest', ['run', '--project', 'unit', ...tests]);
  } finally {
    run('git', ['reset', '--quiet', '--hard']);
  }
});
