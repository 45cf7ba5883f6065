import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test } from 'vitest';
import { environmentNames } from '../../../lib/cli/assist/account-names';
import { type CompletionOptions, candidates, type Names } from '../../../lib/cli/assist/completion';
import { CLI, runCli } from '../../support/run-cli';

const asked: CompletionOptions[] = [];
const NAMES: Names = {
  environments: async () => ['research', 'research/nlp', 'demo'],
  runs: async (options) => {
    asked.push(options);
    return ['llama3-8b-261101090000', 'gpt-261101090000'];
  },
};
const complete = (...words: string[]) => candidates(words, CLI, NAMES);

test('verbs, and what they begin with', async () => {
  expect(await complete('')).toEqual(expect.arrayContaining(['launch', 'plan', 'status', 'tools']));
  expect(await complete('va')).toEqual(['validate']);
  expect(await complete('tools', 'm')).toEqual(['mcp']);
  expect(await complete('frobnicate', '')).toEqual([]);
});

test('options of the verb, and their values', async () => {
  expect(await complete('plan', 'run.yaml', '--se')).toEqual(['--search', '--search-libraries', '--set']);
  expect(await complete('status', 'a-run', '--environment', 're')).toEqual(['research', 'research/nlp']);
  expect(await complete('list', '--region', 'us-west')).toEqual(['us-west-1', 'us-west-2']);
  expect(await complete('verify', 'research', '--level', '')).toEqual(['deploy', 'efa', 'read', 'train']);
  expect(await complete('launch', 'run.yaml', '--out', '')).toEqual([]);
});

test('runs of the environment that the line names', async () => {
  expect(await complete('logs', '--environment', 'research/nlp', '--region', 'us-east-1', 'll')).toEqual([
    'llama3-8b-261101090000',
  ]);
  expect(asked.at(-1)).toEqual({ environment: 'research/nlp', region: 'us-east-1' });
  expect(await complete('status', '')).toEqual(['gpt-261101090000', 'llama3-8b-261101090000']);
  expect(await complete('drift', '')).toEqual(['demo', 'research', 'research/nlp']);
});

test('words of verbs that take one of a few, and nothing where a file is meant', async () => {
  expect(await complete('sandbox', 's')).toEqual(['start', 'status', 'stop']);
  expect(await complete('tools', 'schema', 'r')).toEqual(['run']);
  expect(await complete('tools', 'completion', '')).toEqual(['bash', 'fish', 'zsh']);
  expect(await complete('validate', 'runs/')).toEqual([]);
  expect(await complete('init', '--package', '')).toEqual([]);
});

test('an account that does not answer gives no names', async () => {
  const failing: Names = {
    environments: () => Promise.reject(new Error('x')),
    runs: () => Promise.reject(new Error('x')),
  };
  expect(await candidates(['status', ''], CLI, failing)).toEqual([]);
  expect(await candidates(['list', '--environment', ''], CLI, failing)).toEqual([]);
});

test('environments are those of the files of a folder, with their teams', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'slipway-names-'));
  writeFileSync(path.join(folder, 'a.yaml'), 'name: a\nregions: { us-west-2: {} }\nteams: { nlp: {}, speech: {} }\n');
  writeFileSync(path.join(folder, 'a.lock.yaml'), 'schema: 1\n');
  writeFileSync(path.join(folder, 'broken.yaml'), 'name: [\n');
  expect(environmentNames(folder)).toEqual(['a', 'a/nlp', 'a/speech']);
  expect(environmentNames(path.join(folder, 'none'))).toEqual([]);
  rmSync(folder, { recursive: true });
});

test('the command prints candidates one a line, and a script for each shell', async () => {
  expect(await runCli('tools', 'completion', 'candidates', '--', 'va')).toMatchObject({ code: 0, stdout: 'validate' });
  expect(await runCli('tools', 'completion', 'tcsh')).toMatchObject({
    code: 2,
    stderr: 'slipway: tools completion: must be bash, zsh or fish, got tcsh; use one of them',
  });
});

const INSTALLED = ['bash', 'zsh', 'fish'].filter((shell) => spawnSync(shell, ['--version']).status === 0);

test.each(INSTALLED)('the script of %s is one that the shell reads', async (shell) => {
  const { stdout } = await runCli('tools', 'completion', shell);
  expect(spawnSync(shell, ['-n'], { input: stdout, encoding: 'utf8' })).toMatchObject({ status: 0, stderr: '' });
});

test('bash asks for the words up to the one under the cursor, spaces in them kept', async () => {
  const { stdout } = await runCli('tools', 'completion', 'bash');
  const play = `${stdout}
slipway() { printf '<%s>\\n' "$@"; }
COMP_WORDS=(slipway launch 'my run.yaml' --env extra); COMP_CWORD=3; _slipway
printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { stdout: said } = spawnSync('bash', ['-c', play], { encoding: 'utf8' });
  expect(said.trim().split('\n')).toEqual([
    '<tools>',
    '<completion>',
    '<candidates>',
    '<-->',
    '<launch>',
    '<my run.yaml>',
    '<--env>',
  ]);
});
