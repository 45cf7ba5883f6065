// "The same by hand" of docs/guides/quick-start.md, played as it is printed: the blocks in one shell, in a fresh clone.
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { MINISTACK_VERSION } from '../../lib/sandbox/ministack/venv';
import { freshClone, installPackages } from '../e2e/support/clone';
import { ROOT } from '../e2e/support/sandbox';
import { blocksOf, textOf } from '../support/pages';

const PAGE = 'docs/guides/quick-start.md';

let folder: string;
let clone: string;
beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'slipway-quick-start-'));
  clone = path.join(folder, 'clone');
  freshClone(clone);
  installPackages(clone);
  cpSync(path.join(ROOT, 'dist'), path.join(clone, 'dist'), { recursive: true });
  mkdirSync(path.join(folder, '.local/state/slipway'), { recursive: true });
  symlinkSync(
    path.join(ROOT, '.slipway/venv'),
    path.join(folder, `.local/state/slipway/ministack-${MINISTACK_VERSION}`),
  );
});
afterAll(() => {
  // The page stops the sandbox itself; after a failure something may be left.
  if (clone) shell('node dist/cli/slipway.mjs sandbox stop');
  if (folder) rmSync(folder, { recursive: true, force: true });
});

/** A script in a shell of a person who has no AWS account. */
const shell = (script: string) =>
  spawnSync('bash', ['-ec', script], {
    cwd: clone,
    encoding: 'utf8',
    env: {
      PATH: process.env.PATH,
      HOME: folder,
      NODE_NO_WARNINGS: '1',
      CDK_DISABLE_CLI_TELEMETRY: 'true',
      npm_config_cache: path.join(folder, 'npm'),
      npm_config_update_notifier: 'false',
      SLIPWAY_POLL_SECONDS: '1',
    },
  });

test('the embedded AWS starts, an environment is deployed, a script runs to its end, and all of it stops', () => {
  const byHand = textOf(PAGE).slice(0, textOf(PAGE).indexOf('## The same by hand')).split('\n').length;
  const blocks = blocksOf(PAGE).filter(({ line, language }) => line > byHand && language === 'bash');
  expect(blocks.length).toBeGreaterThan(3);
  const { status, stdout, stderr } = shell(blocks.map(({ text }) => text).join(`\necho "::next block::"\n`));
  expect([status, status === 0 ? '' : `${stdout}${stderr}`]).toEqual([0, '']);
  expect(stderr).toMatch(/quota .* \(L-CCE2AFA6\) in us-west-2: raised to \d+/);
  expect(stderr).toContain('deployed Slipway-demo-us-west-2, Slipway-demo-us-east-1');
  expect(stderr).toMatch(/hello-\d{12}: completed/);
  const list = stdout.split('::next block::')[2] ?? '';
  expect(list).toMatch(/hello-\d{12}.*completed/);
  expect(shell('npx slipway sandbox status').stdout).toBe('not running\n');
});
