import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { runOf } from '../../../lib/cli/runs/logs/events';
import { runCli } from '../../support/run-cli';

test('fails: neither a run id nor an environment', async () => {
  const { code, stderr } = await runCli('events', 'Not-A-Run', '--environment', 'research');
  expect(code).toBe(2);
  expect(stderr).toContain('events: must be given a run id (<name>-<yymmddhhmmss>) or an environment, got Not-A-Run');
});

test('an id that was chosen at the launch is a run, not the environment that it looks like', () => {
  expect(runOf('pretrain-261121120000', undefined)).toBe('pretrain-261121120000');
  expect(runOf('my-run', undefined)).toBe('my-run');
  expect(runOf('nightly', 'research')).toBe('nightly');
  expect(runOf('research', undefined)).toBeUndefined();
  expect(runOf('research/vision', undefined)).toBeUndefined();
  expect(runOf('research', 'research')).toBeUndefined();
  expect(runOf(undefined, 'research')).toBeUndefined();
});

test('fails: a time that is none', async () => {
  const { code, stderr } = await runCli(
    'events',
    'pretrain-261121120000',
    '--since',
    'soon',
    '--environment',
    'research',
  );
  expect(code).toBe(2);
  expect(stderr).toContain('--since: must be a time or a span');
});

test('the help has two examples', async () => {
  const { stdout } = await runCli('events', '--help');
  expect(stdout.match(/^ {2}slipway events /gm)).toHaveLength(2);
  expect(readFileSync(path.join(__dirname, '../../../docs/reference/command-line.md'), 'utf8')).toContain(
    'slipway events',
  );
});
