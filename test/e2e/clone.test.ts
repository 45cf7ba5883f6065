// A clone before its first build: what npx finds, what it says, and that the build which follows is used.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { freshClone, installPackages } from './support/clone';
import { ROOT } from './support/sandbox';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'slipway-clone-'));
  freshClone(path.join(folder, 'clone'));
});
afterAll(() => {
  if (folder) rmSync(folder, { recursive: true, force: true });
});

/** `npx` with a cache of its own, so that it has seen no build of this package before. */
const npx = (...args: string[]) =>
  spawnSync('npx', ['--offline', 'slipway', ...args], {
    cwd: path.join(folder, 'clone'),
    encoding: 'utf8',
    env: { ...process.env, npm_config_cache: path.join(folder, 'cache') },
  });

test('without its packages npx slipway says what to run', () => {
  const { status, stdout, stderr } = npx('--version');
  expect(stderr).toContain('the packages of this clone are not installed; run npm ci in ');
  expect([status, stdout]).toEqual([2, '']);
});

test.each(['tools schema run', 'tools schema environment'])('slipway %s | head ends without a word', (verb) => {
  const { status, stderr, stdout } = spawnSync(
    'bash',
    ['-c', `"${process.execPath}" dist/cli/slipway.mjs ${verb} | head -1`],
    {
      cwd: ROOT,
      encoding: 'utf8',
    },
  );
  expect([status, stderr, stdout]).toEqual([0, '', '{\n']);
});

test('before the first build npx slipway builds itself, says so beside the answer, and stays found after it', () => {
  installPackages(path.join(folder, 'clone'));
  const first = npx('validate', 'runs/builtin/starter.yaml', '--json');
  expect(JSON.parse(first.stdout)).toMatchObject({ ok: true });
  expect(first.stderr).toContain('no build yet; running node scripts/build.mjs cli');
  const second = npx('validate', 'runs/builtin/starter.yaml', '--json');
  expect(JSON.parse(second.stdout)).toMatchObject({ ok: true });
  expect(second.stderr).not.toContain('no build yet');
});
