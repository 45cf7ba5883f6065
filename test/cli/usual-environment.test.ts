// Each verb that works on an environment takes the one of SLIPWAY_ENVIRONMENT where nothing else names one.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { GetParameterCommand, SSMClient } from '@aws-sdk/client-ssm';
import { afterAll, beforeEach, expect, test, vi } from 'vitest';
import { mockClient } from '../support/mocked-clients';
import { runCli, VERBS } from '../support/run-cli';
import { BASE } from '../support/runs';

const ssm = mockClient(SSMClient);
const FOLDER = mkdtempSync(path.join(tmpdir(), 'slipway-usual-'));
const FILE = path.join(FOLDER, 'run.yaml');
const DEMO = readFileSync(path.join(__dirname, '../../runs/builtin/demo.yaml'), 'utf8');
writeFileSync(FILE, DEMO);
// `shell` looks for the plugin of Session Manager before it asks anybody.
writeFileSync(path.join(FOLDER, 'session-manager-plugin'), '#!/bin/sh\necho 1.2.707.0\n', { mode: 0o755 });
const CONFIG_IN_S3 = path.join(FOLDER, 'config.yaml');
writeFileSync(CONFIG_IN_S3, JSON.stringify({ ...BASE, model: { config: 's3://{dataBucket}/config.json' } }));
afterAll(() => rmSync(FOLDER, { recursive: true }));

/** What each verb that reads a descriptor is called with. */
const READS: readonly string[][] = [
  ['launch', FILE, '--dry-run'],
  ['preflight', FILE],
  ['preflight', CONFIG_IN_S3, '--regions'],
  ['status', 'r-1'],
  ['status', 'r-1', '--wait'],
  ['status', 'r-1', '--chart'],
  ['status', 'r-1', '--events'],
  ['status', 'r-1', '--lineage'],
  ['status', 'r-1', '--note', 'good'],
  ['list'],
  ['list', '--active'],
  ['list', '--events'],
  ['logs', 'r-1'],
  ['report', 'r-1'],
  ['report', 'r-1', 'r-2', '--diff'],
  ['publish', 'r-1'],
  ['fetch', 'hf:a/b'],
  ['finetune', '--model', 'hf:a/b', '--data', 'a.jsonl', '--method', 'sft'],
  ['shell', 'r-1'],
  ['delete', 'r-1'],
  ['stop', 'r-1'],
  ['stop', 'r-1', '--release-pool'],
  ['resume', 'r-1'],
  ['quota', CONFIG_IN_S3],
  ['plan', CONFIG_IN_S3],
];
/** Why the other verbs read none. */
const OTHERS: Readonly<Record<string, string>> = {
  init: 'makes files',
  validate: 'offline',
  drift: 'names its environment itself',
  team: 'names its environment itself',
  'deployer-policy': 'names its environment itself',
  verify: 'names its environment itself',
  sandbox: 'is its own account',
  import: 'reads somebody else',
  'tools schema': 'prints files',
  'tools completion': 'prints a script; names of the variable are offered by account-names.ts',
  'tools mcp': 'runs the verbs above',
};

const asked = () => ssm.commandCalls(GetParameterCommand).map(({ args }) => args[0].input.Name);
beforeEach(() => {
  ssm.reset();
  ssm.on(GetParameterCommand).rejects(Object.assign(new Error('stop here'), { name: 'StopHere' }));
  vi.stubEnv('SLIPWAY_ENVIRONMENT', 'usual/nlp');
  vi.stubEnv('AWS_REGION', 'us-west-2');
  vi.stubEnv('PATH', `${FOLDER}${path.delimiter}${process.env.PATH}`);
});

test('each verb is in one of the tables', () => {
  const known = new Set([...READS.map(([verb]) => verb), ...Object.keys(OTHERS)]);
  expect(VERBS.map(({ name }) => name).sort()).toEqual([...known].sort());
});

test.each(READS.map((words) => [words]))('%j', async (words) => {
  const { code, stderr } = await runCli(...words);
  expect([code, stderr]).toEqual([3, expect.stringContaining('reading environment usual/nlp in us-west-2')]);
  expect(asked()[0]).toBe('/slipway/environments/usual/nlp');
  ssm.resetHistory();
  await runCli(...words, '--environment', 'named/nlp');
  expect(asked()[0]).toBe('/slipway/environments/named/nlp');
});

test('the environment of the run file goes before it', async () => {
  writeFileSync(FILE, `${DEMO}environment: own/nlp\n`);
  for (const args of [
    ['launch', FILE, '--dry-run'],
    ['preflight', FILE],
  ])
    await runCli(...args);
  expect(asked()).toEqual(['/slipway/environments/own/nlp', '/slipway/environments/own/nlp']);
});

test('fails: without any, or with an empty one, all three places are named', async () => {
  vi.stubEnv('SLIPWAY_ENVIRONMENT', '');
  const { code, stderr } = await runCli('status', 'r-1');
  expect([code, stderr]).toEqual([
    2,
    expect.stringContaining('set environment: in the run file, or SLIPWAY_ENVIRONMENT'),
  ]);
});
